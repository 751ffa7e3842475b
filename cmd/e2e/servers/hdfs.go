package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// HDFSOptions chooses what StartHDFS and StartHDFSPair start.
type HDFSOptions struct {
	Version   string            // one of HDFSVersions; default the newest
	DataNodes int               // default 1
	Dir       string            // where it lives; default a temporary folder that goes with it
	CoreSite  map[string]string // further properties of core-site.xml
	HDFSSite  map[string]string // further properties of hdfs-site.xml; dfs.replication is 1 unless given
}

// HDFS is one NameNode with DataNodes. Each of them may be stopped, killed,
// paused and started again on its own; ports of the NameNode and all data stay.
type HDFS struct {
	URL       string // hdfs://HOST:PORT
	RPC, HTTP string // HOST:PORT of the NameNode
	WebURL    string // of WebHDFS: http://HOST:PORT/webhdfs/v1; append a path, ?op= and user.name=
	Dir       string
	NameNode  *NameNode
	DataNodes []*Daemon
	*Hadoop   // its tools, configured for this cluster

	home home
}

// StartHDFS starts an HDFS and waits until a file can be written to it.
func StartHDFS(ctx context.Context, o HDFSOptions) (*HDFS, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	o.Version = newest(o.Version, HDFSVersions)
	h, err := newHDFS(ctx, o)
	if err == nil {
		if err = h.Start(ctx); err != nil {
			h.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("hdfs %s: %w", o.Version, err)
	}
	return h, nil
}

// newHDFS configures the cluster and formats its NameNode where that is new.
func newHDFS(ctx context.Context, o HDFSOptions) (_ *HDFS, err error) {
	jars, err := hadoopJars(o.Version).fetch(ctx)
	if err != nil {
		return nil, err
	}
	home, err := newHome("hdfs", o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			home.Close()
		}
	}()
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, err
	}
	nn := &NameNode{RPC: addrs[0], HTTP: addrs[1]}
	h := &HDFS{
		URL: "hdfs://" + nn.RPC, RPC: nn.RPC, HTTP: nn.HTTP, WebURL: webURL(nn.HTTP), Dir: home.dir,
		NameNode: nn, Hadoop: &Hadoop{o.Version, filepath.Join(home.dir, "conf"), jars}, home: home,
	}
	core := with(map[string]string{"fs.defaultFS": h.URL}, o.CoreSite)
	hdfs := with(hdfsDefaults, map[string]string{"dfs.namenode.http-address": nn.HTTP}, o.HDFSSite)
	data := filepath.Join(home.dir, "data")
	if err := h.configure(with(core, map[string]string{"hadoop.tmp.dir": data}), hdfs); err != nil {
		return nil, err
	}
	nn.Daemon = h.daemon("namenode", home.dir, nameNodeClass, nn.listens)
	if h.DataNodes, err = h.newDataNodes(home.dir, max(1, o.DataNodes), core, hdfs); err != nil {
		return nil, err
	}
	return h, h.format(ctx, data)
}

// hdfsDefaults is what any small cluster on loopback is configured with.
var hdfsDefaults = map[string]string{
	"dfs.replication":                                      "1",
	"dfs.datanode.address":                                 "127.0.0.1:0",
	"dfs.datanode.http.address":                            "127.0.0.1:0",
	"dfs.datanode.ipc.address":                             "127.0.0.1:0",
	"dfs.namenode.safemode.extension":                      "0",
	"dfs.namenode.fs-limits.min-block-size":                "1024",
	"dfs.namenode.datanode.registration.ip-hostname-check": "false",
}

// newDataNodes gives each DataNode a configuration and a data folder of its own.
func (h *Hadoop) newDataNodes(dir string, n int, core, hdfs map[string]string) ([]*Daemon, error) {
	var nodes []*Daemon
	for i := range n {
		name := "datanode" + strconv.Itoa(i+1)
		own := &Hadoop{h.Version, filepath.Join(dir, "conf-"+name), h.jars}
		tmp := map[string]string{"hadoop.tmp.dir": filepath.Join(dir, "data-"+name)}
		if err := own.configure(with(core, tmp), hdfs); err != nil {
			return nil, err
		}
		var d *Daemon
		d = own.daemon(name, dir, dataNodeClass, func(context.Context) error {
			return d.logged("Successfully sent block report")
		})
		nodes = append(nodes, d)
	}
	return nodes, nil
}

// format makes an empty file system, unless a chosen folder has one already.
func (h *Hadoop) format(ctx context.Context, data string) error {
	if versions, _ := filepath.Glob(filepath.Join(data, "dfs", "name", "current", "VERSION")); len(versions) > 0 {
		return nil
	}
	return h.prepare(ctx, nameNodeClass, "-format", "-nonInteractive", "-force")
}

// Start starts what does not run and waits until a file can be written.
func (h *HDFS) Start(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	// The NameNode first: a DataNode whose first handshake fails was seen to
	// take 20 s instead of 3.
	for _, d := range append([]*Daemon{h.NameNode.Daemon}, h.DataNodes...) {
		if d.PID() != 0 {
			continue
		}
		if err := d.Start(ctx); err != nil {
			return err
		}
	}
	return h.Await(ctx)
}

// Await waits until the NameNode is out of safe mode and all DataNodes can take
// blocks.
func (h *HDFS) Await(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return poll(ctx, "HDFS to take files", func(ctx context.Context) error {
		return h.NameNode.serves(ctx, len(h.DataNodes))
	})
}

// Stop stops all processes cleanly, the NameNode last.
func (h *HDFS) Stop() error {
	var err error
	for _, d := range h.DataNodes {
		err = cmp.Or(d.Stop(), err)
	}
	return errors.Join(err, h.NameNode.Stop())
}

// Kill ends all processes at once.
func (h *HDFS) Kill() {
	h.NameNode.Kill()
	for _, d := range h.DataNodes {
		d.Kill()
	}
}

// Close ends all processes and removes the files, unless the caller chose where
// they are.
func (h *HDFS) Close() error {
	h.Kill()
	return h.home.Close()
}
