package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
)

// Nameservice is the logical name of a pair: its URL is hdfs://ns1.
const Nameservice = "ns1"

// HDFSPair is two NameNodes with automatic failover: a shared edits folder,
// ZooKeeper, and a failover controller beside each.
type HDFSPair struct {
	URL       string // hdfs://ns1; clients need the configuration in Conf
	Dir       string
	NameNodes [2]*NameNode // nn1, nn2
	ZKFCs     [2]*Daemon   // beside each
	DataNodes []*Daemon
	ZooKeeper *ZooKeeper
	*Hadoop   // its tools, configured for this cluster: HAAdmin is hdfs haadmin

	own  *ZooKeeper // ends with the pair; nil where the caller brought one
	home home
}

// StartHDFSPair starts a pair, on the given ZooKeeper or, if that is nil, on
// one of its own, and waits until one NameNode is active, the other standby,
// and a file can be written.
func StartHDFSPair(ctx context.Context, o HDFSOptions, zk *ZooKeeper) (_ *HDFSPair, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	o.Version = newest(o.Version, HDFSVersions)
	var begun []io.Closer
	defer func() {
		if err != nil {
			closeAll(begun)
			err = fmt.Errorf("pair of NameNodes %s: %w", o.Version, err)
		}
	}()
	jars, err := hadoopJars(o.Version).fetch(ctx)
	if err != nil {
		return nil, err
	}
	home, err := newHome("hdfspair", o.Dir)
	if err != nil {
		return nil, err
	}
	begun = append(begun, home)
	p := &HDFSPair{URL: "hdfs://" + Nameservice, Dir: home.dir, ZooKeeper: zk, home: home,
		Hadoop: &Hadoop{o.Version, filepath.Join(home.dir, "conf-nn1"), jars}}
	if zk == nil {
		if p.own, err = StartZooKeeper(ctx, ZooKeeperOptions{}); err != nil {
			return nil, err
		}
		begun = append(begun, p.own)
		p.ZooKeeper = p.own
	}
	tools, err := p.lay(o)
	if err != nil {
		return nil, err
	}
	begun = append(begun, processes{p})
	return p, p.begin(ctx, tools)
}

// lay writes the configurations and describes the processes; it returns the
// tools of each NameNode's own configuration.
func (p *HDFSPair) lay(o HDFSOptions) (tools [2]*Hadoop, err error) {
	addrs, err := freeAddrs(6)
	if err != nil {
		return tools, err
	}
	core := with(map[string]string{"fs.defaultFS": p.URL, "ha.zookeeper.quorum": p.ZooKeeper.Addr}, o.CoreSite)
	hdfs := with(hdfsDefaults, map[string]string{
		"dfs.nameservices":                                  Nameservice,
		"dfs.ha.namenodes." + Nameservice:                   "nn1,nn2",
		"dfs.namenode.shared.edits.dir":                     "file://" + filepath.Join(p.Dir, "shared"),
		"dfs.ha.automatic-failover.enabled":                 "true",
		"dfs.ha.fencing.methods":                            "shell(/bin/true)",
		"dfs.client.failover.proxy.provider." + Nameservice: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
	})
	for i, id := range []string{"nn1", "nn2"} {
		key := Nameservice + "." + id
		p.NameNodes[i] = &NameNode{ID: id, RPC: addrs[3*i], HTTP: addrs[3*i+1]}
		maps.Copy(hdfs, map[string]string{
			"dfs.namenode.rpc-address." + key:  addrs[3*i],
			"dfs.namenode.http-address." + key: addrs[3*i+1],
			"dfs.ha.zkfc.port." + key:          portOf(addrs[3*i+2]),
		})
	}
	maps.Copy(hdfs, o.HDFSSite)
	for i, nn := range p.NameNodes {
		tools[i] = &Hadoop{p.Version, filepath.Join(p.Dir, "conf-"+nn.ID), p.jars}
		err := tools[i].configure(
			with(core, map[string]string{"hadoop.tmp.dir": filepath.Join(p.Dir, "data-"+nn.ID)}),
			with(hdfs, map[string]string{"dfs.ha.namenode.id": nn.ID}))
		if err != nil {
			return tools, err
		}
		nn.Daemon = tools[i].daemon("namenode-"+nn.ID, p.Dir, nameNodeClass, nn.listens)
		zkfcAddr := addrs[3*i+2]
		p.ZKFCs[i] = tools[i].daemon("zkfc-"+nn.ID, p.Dir, ZKFC, func(ctx context.Context) error {
			return accepts(ctx, zkfcAddr)
		})
	}
	p.DataNodes, err = p.newDataNodes(p.Dir, max(1, o.DataNodes), core, hdfs)
	return tools, err
}

// begin formats and starts in the one order that works: the second NameNode
// copies its image from the first, which must serve by then.
func (p *HDFSPair) begin(ctx context.Context, tools [2]*Hadoop) error {
	if err := tools[0].prepare(ctx, nameNodeClass, "-format", "-nonInteractive", "-force"); err != nil {
		return err
	}
	if err := tools[0].prepare(ctx, ZKFC, "-formatZK", "-nonInteractive", "-force"); err != nil {
		return err
	}
	if err := p.NameNodes[0].Start(ctx); err != nil {
		return err
	}
	if err := tools[1].prepare(ctx, nameNodeClass, "-bootstrapStandby", "-nonInteractive"); err != nil {
		return err
	}
	for _, d := range append([]*Daemon{p.NameNodes[1].Daemon, p.ZKFCs[0], p.ZKFCs[1]}, p.DataNodes...) {
		if err := d.Start(ctx); err != nil {
			return err
		}
	}
	return p.Await(ctx)
}

// Await waits until one NameNode is active and takes files, and the other is
// its standby.
func (p *HDFSPair) Await(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return poll(ctx, "one NameNode active and one standby", func(ctx context.Context) error {
		active, err := p.Active(ctx)
		if err != nil {
			return err
		}
		other := p.Other(active)
		state, err := other.State(ctx)
		if err == nil && state != "standby" {
			err = fmt.Errorf("%s is %s", other.ID, state)
		}
		return errors.Join(err, active.serves(ctx, len(p.DataNodes)))
	})
}

// Active returns the NameNode that says it is active; an error if none does.
func (p *HDFSPair) Active(ctx context.Context) (*NameNode, error) {
	var err error
	for _, nn := range p.NameNodes {
		state, e := nn.State(ctx)
		if state == "active" {
			return nn, nil
		}
		err = cmp.Or(err, e)
	}
	return nil, errors.Join(errors.New("no NameNode is active"), err)
}

// Other returns the other NameNode.
func (p *HDFSPair) Other(nn *NameNode) *NameNode {
	if nn == p.NameNodes[0] {
		return p.NameNodes[1]
	}
	return p.NameNodes[0]
}

// Kill ends all processes at once, save ZooKeeper.
func (p *HDFSPair) Kill() { processes{p}.Close() }

// Close ends all processes and removes the files, unless the caller chose where
// they are. A ZooKeeper that the caller brought goes on.
func (p *HDFSPair) Close() error {
	p.Kill()
	if p.own != nil {
		p.own.Close()
	}
	return p.home.Close()
}

// processes are those of a pair, failover controllers first: they would take
// the end of a NameNode for a failure.
type processes struct{ pair *HDFSPair }

func (p processes) Close() error {
	for _, d := range p.pair.daemons() {
		d.Kill()
	}
	return nil
}

func (p *HDFSPair) daemons() []*Daemon {
	all := []*Daemon{p.ZKFCs[0], p.ZKFCs[1], p.NameNodes[0].Daemon, p.NameNodes[1].Daemon}
	return append(all, p.DataNodes...)
}
