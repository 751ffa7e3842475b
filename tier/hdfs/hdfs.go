// Package hdfs is a tier.Store on HDFS. Containers, whose size is known, are written by
// datanode/, our own block writer; blocks are read, and files of unknown size and over
// encrypted connections written, through github.com/colinmarc/hdfs/v2; everything else
// goes through namenode/, our own RPC client. No other package imports any of them.
//
//	folders  0750
//	files    0440, one block each: the size rounded up to the checksum chunk (at
//	         least the NameNode's least block), for quota is charged by whole blocks
//	         while a file is open
//
// HDFS closes a file without syncing the DataNodes' disks: hence the grace of 60 s
// and LiveReplicas before a local copy may go (protocols.md T11).
//
// A writer has a library client to itself while it writes: cutting its connections
// ends it at once, and its lease ends with it.
package hdfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"varve/tier"
	"varve/tier/hdfs/namenode"
)

const (
	folderMode fs.FileMode = 0o750
	fileMode   fs.FileMode = 0o440
)

// Options say how to reach an HDFS. Zero values are the defaults named.
type Options struct {
	NameNodes []string // host:port of every NameNode; none: the URL's authority
	User      string   // "": HADOOP_USER_NAME, else the operating system's user

	Connect  time.Duration // to connect, and for a DataNode's first word; 0 = 5 s
	Call     time.Duration // one attempt of a call to a NameNode; 0 = 10 s
	Patience time.Duration // a call over all its attempts; 0 = 30 s
	Read     time.Duration // silence of a DataNode that is read; 0 = 15 s
	Write    time.Duration // silence of a DataNode that is written to, heartbeats come every 30 s; 0 = 75 s

	Replication         int                 // of new files; 0 = the server's default
	LeastReplication    int                 // when a pipeline cannot be made; 0 = 1
	Grace               time.Duration       // tier.Store.Grace; 0 = 60 s
	Readers             []namenode.ACLEntry // who may read topics' folders besides owner and group; see Share
	UseDatanodeHostname bool                // dfs.client.use.datanode.hostname
}

func (o *Options) setDefaults(authority string) error {
	if len(o.NameNodes) == 0 {
		o.NameNodes = []string{withPort(authority)}
	}
	if o.User == "" {
		name, err := effectiveUser()
		if err != nil {
			return err
		}
		o.User = name
	}
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{
		{&o.Connect, 5 * time.Second}, {&o.Call, 10 * time.Second}, {&o.Patience, 30 * time.Second},
		{&o.Read, 15 * time.Second}, {&o.Write, 75 * time.Second}, {&o.Grace, 60 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	o.LeastReplication = max(o.LeastReplication, 1)
	return nil
}

// A Store is a tier.Store under one folder of an HDFS.
type Store struct {
	o         Options
	authority string
	root      string // absolute path in HDFS
	nn        *namenode.Client
	pool      *pool
	pipeline  pipeline
}

var _ tier.Store = (*Store)(nil)

// Open makes a store of hdfs://host:port/path without asking anything of HDFS yet:
// a broker starts while HDFS is away. Probe tells whether it will do.
func Open(url string, o Options) (*Store, error) {
	authority, root, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if err := o.setDefaults(authority); err != nil {
		return nil, err
	}
	s := &Store{o: o, authority: authority, root: root, pool: newPool(o)}
	s.nn = namenode.New(namenode.Options{
		Addrs: o.NameNodes, User: o.User, Timeout: o.Call, Patience: o.Patience,
		Dial: newDialler(o.Connect).dial,
	})
	return s, nil
}

// URL is the root as it was given.
func (s *Store) URL() string { return "hdfs://" + s.authority + s.root }

// Grace is 60 s unless Options say otherwise.
func (s *Store) Grace() time.Duration { return s.o.Grace }

// NameNode is the store's client for control calls.
func (s *Store) NameNode() *namenode.Client { return s.nn }

// Path is where a name lies in HDFS.
func (s *Store) Path(name string) string { return path.Join(s.root, name) }

// Close ends all connections.
func (s *Store) Close() error {
	s.pool.close()
	return s.nn.Close()
}

// Rename moves a file or folder without overwriting. A lost answer is settled by the
// same call id (T1); where even that says that the source is not there, the target
// decides whether the outcome is known.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	doing := "renaming " + from + " to " + to
	if err := s.check(ctx, doing, from, to); err != nil {
		return err
	}
	err := s.nn.Rename(ctx, s.Path(from), s.Path(to))
	if err == nil {
		return nil
	}
	var call *namenode.Error
	if errors.As(err, &call) && call.Lost && errors.Is(err, tier.ErrNotFound) {
		// no retry cache answered: either the lost attempt moved it, or it was gone
		if _, statErr := s.nn.Stat(ctx, s.Path(to)); !errors.Is(statErr, tier.ErrNotFound) {
			return s.failAs(tier.ErrUnsettled, doing, err)
		}
	}
	return s.fail(doing, err)
}

// Delete removes a file or an empty folder.
func (s *Store) Delete(ctx context.Context, name string) error { return s.remove(ctx, name, false) }

// DeleteAll removes a folder and all in it, in one call.
func (s *Store) DeleteAll(ctx context.Context, name string) error { return s.remove(ctx, name, true) }

func (s *Store) remove(ctx context.Context, name string, all bool) error {
	doing := "deleting " + name
	if err := s.check(ctx, doing, name); err != nil {
		return err
	}
	if name == "" {
		return s.fail(doing, errors.New("the root is not deleted"))
	}
	if _, err := s.nn.Delete(ctx, s.Path(name), all); err != nil {
		return s.fail(doing, err)
	}
	return nil
}

// Mkdir makes one folder.
func (s *Store) Mkdir(ctx context.Context, name string) error { return s.mkdir(ctx, name, false) }

// MkdirAll makes a folder and its parents.
func (s *Store) MkdirAll(ctx context.Context, name string) error { return s.mkdir(ctx, name, true) }

func (s *Store) mkdir(ctx context.Context, name string, parents bool) error {
	doing := "making the folder " + cmp.Or(name, "of the cluster")
	if err := s.check(ctx, doing, name); err != nil {
		return err
	}
	if err := s.nn.Mkdirs(ctx, s.Path(name), folderMode, parents); err != nil {
		return s.fail(doing, err)
	}
	return nil
}

// Stat looks at one name.
func (s *Store) Stat(ctx context.Context, name string) (tier.FileInfo, error) {
	doing := "looking at " + name
	if err := s.check(ctx, doing, name); err != nil {
		return tier.FileInfo{}, err
	}
	status, err := s.nn.Stat(ctx, s.Path(name))
	if err != nil {
		return tier.FileInfo{}, s.fail(doing, err)
	}
	_, status.Name = tier.Parent(name)
	return fileInfo(status), nil
}

// List lists a folder in order of names.
func (s *Store) List(ctx context.Context, dir string) ([]tier.FileInfo, error) {
	return s.list(ctx, dir, false)
}

// ListLocated lists a folder with the hosts of each file's first block.
func (s *Store) ListLocated(ctx context.Context, dir string) ([]tier.FileInfo, error) {
	return s.list(ctx, dir, true)
}

func (s *Store) list(ctx context.Context, dir string, located bool) ([]tier.FileInfo, error) {
	doing := "listing " + dir
	if err := s.check(ctx, doing, dir); err != nil {
		return nil, err
	}
	all, err := s.nn.List(ctx, s.Path(dir), located)
	if err != nil {
		return nil, s.fail(doing, err)
	}
	list := make([]tier.FileInfo, len(all))
	for i, status := range all {
		list[i] = fileInfo(status)
	}
	return list, nil
}

func fileInfo(status namenode.FileStatus) tier.FileInfo {
	return tier.FileInfo{
		Name: status.Name, Size: status.Length, Dir: status.Dir,
		ModTime: status.ModTime, Hosts: status.Hosts,
	}
}

// LiveReplicas is the least number of replicas over the file's blocks; a file that
// is still being written has none that count.
func (s *Store) LiveReplicas(ctx context.Context, name string) (live, want int, err error) {
	doing := "counting the replicas of " + name
	if err := s.check(ctx, doing, name); err != nil {
		return 0, 0, err
	}
	status, err := s.nn.Stat(ctx, s.Path(name))
	if err != nil {
		return 0, 0, s.fail(doing, err)
	}
	where, err := s.nn.BlockLocations(ctx, s.Path(name))
	if err != nil {
		return 0, 0, s.fail(doing, err)
	}
	if where.Open {
		return 0, status.Replication, nil
	}
	live = status.Replication
	for i, block := range where.Blocks {
		n := len(block.Hosts)
		if block.Corrupt {
			n = 0
		}
		if i == 0 || n < live {
			live = n
		}
	}
	return live, status.Replication, nil
}

// Grant gives entries of a default access control list to a folder: what is made
// under it inherits them (a rename adds none). On a NameNode without ACLs it does
// nothing and says so.
func (s *Store) Grant(ctx context.Context, name string, entries []namenode.ACLEntry) (granted bool, err error) {
	doing := "setting the default ACL of " + name
	if err := s.check(ctx, doing, name); err != nil {
		return false, err
	}
	err = s.nn.ModifyACL(ctx, s.Path(name), entries)
	if namenode.IsACLsOff(err) {
		return false, nil
	}
	if err != nil {
		return false, s.fail(doing, err)
	}
	return true, nil
}

// check refuses names that are none and calls whose context has ended.
func (s *Store) check(ctx context.Context, doing string, names ...string) error {
	for _, name := range names {
		if err := tier.CheckName(name); err != nil {
			return s.fail(doing, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return s.failAs(tier.ErrUnavailable, doing, err)
	}
	return nil
}

func (s *Store) fail(doing string, err error) error {
	return fmt.Errorf("%s in %s: %w", doing, s.URL(), err)
}

func (s *Store) failAs(kind error, doing string, err error) error {
	return fmt.Errorf("%s in %s: %w: %w", doing, s.URL(), kind, err)
}
