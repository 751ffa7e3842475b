package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Main classes of Hadoop's commands.
const (
	FsShell  = "org.apache.hadoop.fs.FsShell"            // hadoop fs
	DFSAdmin = "org.apache.hadoop.hdfs.tools.DFSAdmin"   // hdfs dfsadmin
	HAAdmin  = "org.apache.hadoop.hdfs.tools.DFSHAAdmin" // hdfs haadmin
	DFSck    = "org.apache.hadoop.hdfs.tools.DFSck"      // hdfs fsck
	ZKFC     = "org.apache.hadoop.hdfs.tools.DFSZKFailoverController"

	nameNodeClass = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNodeClass = "org.apache.hadoop.hdfs.server.datanode.DataNode"
)

// Hadoop runs Hadoop's tools with one configuration. Each run is a JVM: about
// a second and 125 MB.
type Hadoop struct {
	Version string
	Conf    string // folder with core-site.xml and hdfs-site.xml

	jars string
}

// Command prepares a run of a main class, so that its streams and environment
// (HADOOP_USER_NAME) can be set. It ends when ctx does.
func (h *Hadoop) Command(ctx context.Context, class string, args ...string) *exec.Cmd {
	return h.program(class, "-Dvarve.log.level=ERROR").command(ctx, args...)
}

// Tool runs a main class to its end.
func (h *Hadoop) Tool(ctx context.Context, class string, args ...string) (Result, error) {
	return finish(h.Command(ctx, class, args...), class[strings.LastIndexByte(class, '.')+1:], args)
}

// Shell runs hadoop fs, as in Shell(ctx, "-ls", "/").
func (h *Hadoop) Shell(ctx context.Context, args ...string) (Result, error) {
	return h.Tool(ctx, FsShell, args...)
}

// DFSAdmin runs hdfs dfsadmin.
func (h *Hadoop) DFSAdmin(ctx context.Context, args ...string) (Result, error) {
	return h.Tool(ctx, DFSAdmin, args...)
}

// HAAdmin runs hdfs haadmin.
func (h *Hadoop) HAAdmin(ctx context.Context, args ...string) (Result, error) {
	return h.Tool(ctx, HAAdmin, args...)
}

// SafeMode makes the NameNode enter or leave safe mode.
func (h *Hadoop) SafeMode(ctx context.Context, on bool) error {
	verb := "leave"
	if on {
		verb = "enter"
	}
	_, err := h.DFSAdmin(ctx, "-safemode", verb)
	return err
}

func (h *Hadoop) program(class string, options ...string) program {
	options = append(append(openedForOldHadoop[:len(openedForOldHadoop):len(openedForOldHadoop)], smallJVM...), options...)
	return program{h.Conf + string(os.PathListSeparator) + h.jars, options, class}
}

// HadoopShell runs hadoop fs of the newest version without a cluster: paths
// name their file system (file:///…, hdfs://HOST:PORT/…).
func HadoopShell(ctx context.Context, args ...string) (Result, error) {
	jars, err := hadoopJars(HDFSVersions[0]).fetch(ctx)
	if err != nil {
		return Result{Code: -1}, err
	}
	dir, err := os.MkdirTemp("", "varve-hadoop-")
	if err != nil {
		return Result{Code: -1}, err
	}
	defer os.RemoveAll(dir)
	h := &Hadoop{HDFSVersions[0], dir, jars}
	if err := h.configure(nil, nil); err != nil {
		return Result{Code: -1}, err
	}
	return h.Shell(ctx, args...)
}

// configure writes the folder Conf. The jars hold no web pages, and without
// folders for them the daemons exit at once; empty ones do.
func (h *Hadoop) configure(core, hdfs map[string]string) error {
	for _, app := range []string{"hdfs", "datanode", "journal", "secondary", "static"} {
		if err := os.MkdirAll(filepath.Join(h.Conf, "webapps", app), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		writeSite(filepath.Join(h.Conf, "core-site.xml"), core),
		writeSite(filepath.Join(h.Conf, "hdfs-site.xml"), hdfs),
		os.WriteFile(filepath.Join(h.Conf, "log4j.properties"), []byte(log4jToConsole("INFO")), 0o644),
	)
}

// daemon describes a process of the cluster in dir. User names in the
// environment are for clients: the superuser is who runs the test.
func (h *Hadoop) daemon(name, dir, class string, ready func(context.Context) error) *Daemon {
	return &Daemon{
		Name:  name,
		Dir:   dir,
		argv:  h.program(class).argv(),
		unset: []string{"HADOOP_USER_NAME", "HADOOP_PROXY_USER"},
		ready: ready,
	}
}

// prepare runs a step of the set-up that is a JVM of its own.
func (h *Hadoop) prepare(ctx context.Context, class string, args ...string) error {
	cmd := h.Command(ctx, class, args...)
	cmd.Env = without(os.Environ(), "HADOOP_USER_NAME", "HADOOP_PROXY_USER")
	_, err := finish(cmd, class[strings.LastIndexByte(class, '.')+1:], args)
	return err
}

// with returns a copy of base, overlaid.
func with(base map[string]string, overlays ...map[string]string) map[string]string {
	m := maps.Clone(base)
	for _, over := range overlays {
		maps.Copy(m, over)
	}
	return m
}

// without returns the environment less some variables.
func without(env []string, names ...string) []string {
	var rest []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		keep := true
		for _, n := range names {
			keep = keep && name != n
		}
		if keep {
			rest = append(rest, entry)
		}
	}
	return rest
}

// webURL is where a NameNode serves WebHDFS.
func webURL(httpAddr string) string { return fmt.Sprintf("http://%s/webhdfs/v1", httpAddr) }
