package hdfs

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path"
	"strings"
)

// refused are schemes that operators try, and why they are no tier.
var refused = map[string]string{
	"viewfs":               "a viewfs path may cross mounts, and a rename that crosses one does not happen; name the hdfs:// path behind it",
	"viewfsoverloadscheme": "a viewfs path may cross mounts; name the hdfs:// path behind it",
	"s3a":                  "an object store has no rename that refuses to overwrite",
	"s3":                   "an object store has no rename that refuses to overwrite",
	"gs":                   "an object store has no rename that refuses to overwrite",
	"abfs":                 "an object store has no rename that refuses to overwrite",
	"abfss":                "an object store has no rename that refuses to overwrite",
	"o3fs":                 "Ozone speaks another protocol than HDFS",
	"ofs":                  "Ozone speaks another protocol than HDFS",
	"webhdfs":              "name the hdfs:// address (the NameNode's RPC port) instead",
	"swebhdfs":             "name the hdfs:// address (the NameNode's RPC port) instead",
	"hftp":                 "name the hdfs:// address (the NameNode's RPC port) instead",
	"har":                  "an archive cannot be written to",
}

const defaultPort = "8020"

// parseURL splits hdfs://host[:port]/path into the authority and a clean path.
func parseURL(text string) (authority, root string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", "", fmt.Errorf("tier URL %q: %w", text, err)
	}
	if why, no := refused[strings.ToLower(u.Scheme)]; no {
		return "", "", fmt.Errorf("tier URL %q: %s cannot hold a tier: %s", text, u.Scheme, why)
	}
	switch {
	case u.Scheme != "hdfs":
		return "", "", fmt.Errorf("tier URL %q: want hdfs://host:port/path", text)
	case u.Host == "":
		return "", "", fmt.Errorf("tier URL %q names no NameNode: want hdfs://host:port/path", text)
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", "", fmt.Errorf("tier URL %q: want hdfs://host:port/path and nothing more", text)
	}
	root = path.Clean("/" + u.Path)
	if root == "/" {
		return "", "", fmt.Errorf("tier URL %q names the root of HDFS: want a folder below it", text)
	}
	return u.Host, root, nil
}

// withPort adds the NameNode's usual port to an address that has none.
func withPort(authority string) string {
	if _, _, err := net.SplitHostPort(authority); err == nil {
		return authority
	}
	return net.JoinHostPort(strings.Trim(authority, "[]"), defaultPort)
}

// effectiveUser is HADOOP_USER_NAME, else the operating system's user.
func effectiveUser() (string, error) {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("finding the user for HDFS (HADOOP_USER_NAME is not set): %w", err)
	}
	return u.Username, nil
}
