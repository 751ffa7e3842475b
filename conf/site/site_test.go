package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parsed(t *testing.T, body string) *Configuration {
	t.Helper()
	c := New()
	if err := c.AddText("core-site.xml", []byte("<configuration>"+body+"</configuration>")); err != nil {
		t.Fatal(err)
	}
	return c
}

func property1(name, value string) string {
	return "<property><name>" + name + "</name><value>" + value + "</value></property>\n"
}

// What these tests of files and variables expect is what Hadoop 3.5.0's
// Configuration answered for the same input.
func TestPropertiesAreReadAsHadoopReadsThem(t *testing.T) {
	c := parsed(t, `
<property><name> a </name><value> 1 </value></property>
<property name="b" value="2" final="true"/>
<property><name>none</name></property>
<property><name>empty</name><value/></property>
<property><name>dup</name><value>x</value></property>
<property><name>dup</name><value>y</value></property>
<unknown><property><name>inner</name><value>3</value></property></unknown>
<property><name>cdata</name><value><![CDATA[<&>]]> &amp;</value><description>d</description></property>
<property><name>fs.default.name</name><value>hdfs://old</value></property>
`)
	for name, want := range map[string]string{"a": " 1 ", "b": "2", "inner": "3", "dup": "y", "cdata": "<&> &", "fs.defaultFS": "hdfs://old"} {
		if got, ok := c.Raw(name); !ok || got != want {
			t.Errorf("%s: got %q %v, want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"none", "empty"} {
		if _, ok := c.Raw(name); ok {
			t.Errorf("%s: a property without value counts as set", name)
		}
	}
	if got, _ := c.Get("a"); got != "1" {
		t.Errorf("a: got %q, want it trimmed", got)
	}
	if o, _ := c.Origin("b"); o.String() != "core-site.xml:3" {
		t.Errorf("b is from %s, want core-site.xml:3", o)
	}
}

func TestFinalHoldsAgainstLaterResources(t *testing.T) {
	c := parsed(t, `<property><name>a</name><value>1</value><final>true</final></property>`)
	if err := c.AddText("hdfs-site.xml", []byte("<configuration>"+property1("a", "2")+property1("b", "2")+"</configuration>")); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Raw("a"); got != "1" {
		t.Errorf("a: got %q", got)
	}
	if w := c.Warnings(); len(w) != 1 || w[0] != "hdfs-site.xml:an attempt to override final parameter: a;  Ignoring." {
		t.Errorf("warnings: %q", w)
	}
	c.Set("a", "3", "-D")
	if got, _ := c.Raw("a"); got != "3" {
		t.Errorf("after -D a: got %q", got)
	}
}

func TestVariablesAreExpanded(t *testing.T) {
	c := parsed(t, property1("one", "1")+property1("user", "conf")+property1("self", "x${self}")+
		property1("c1", "${c2}")+property1("c2", "${c1}"))
	env := map[string]string{"SET": "s", "EMPTY": ""}
	c.Env = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c.Properties = map[string]string{"user": "system"}
	for expr, want := range map[string]string{
		"${one}/${one}":      "1/1",
		"${user}":            "system",
		"${env.SET}":         "s",
		"${env.NOT-d}":       "d",
		"${env.EMPTY-d}":     "",
		"${env.EMPTY:-d}":    "d",
		"${env.NOT:-a-b}":    "a-b",
		"${unbound}":         "${unbound}",
		"${self}":            "${self}",
		"${${env.NOT-one}}":  "1",
		"${un bound} ${one}": "${un bound} 1",
		"$one {one} ${}":     "$one {one} ${}",
		"a${env.NOT}b":       "a${env.NOT}b",
		"${env.NOT:}":        "${env.NOT:}",
	} {
		c.Set("x", expr, "test")
		if got, err := c.Get("x"); err != nil || got != want {
			t.Errorf("%s: got %q %v, want %q", expr, got, err, want)
		}
	}
	_, err := c.Get("c1")
	if want := "core-site.xml:4: c1: variable substitution depth too large: 20 ${c2}"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string) {
		t.Helper()
		text := `<configuration xmlns:xi="http://www.w3.org/2001/XInclude">` + body + "</configuration>"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("core-site.xml", property1("a", "1")+`<xi:include href="more.xml"/>`+property1("b", "core")+
		`<xi:include href="nope.xml"><xi:fallback>`+property1("f", "fallback")+`</xi:fallback></xi:include>`)
	write("more.xml", property1("a", "2")+property1("b", "more"))
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "2", "b": "core", "f": "fallback"} {
		if got, _ := c.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}

	write("hdfs-site.xml", `<xi:include href="nope.xml"/>`)
	if _, err = Load(dir); err == nil || !strings.HasPrefix(err.Error(), "Fetch fail on include for 'nope.xml' with no fallback while loading") {
		t.Errorf("missing include: got %v", err)
	}
	write("hdfs-site.xml", "\n"+`<xi:include href="more.xml"/>`)
	write("more.xml", `<xi:include href="hdfs-site.xml"/>`)
	if _, err = Load(dir); err == nil || !strings.Contains(err.Error(), "hdfs-site.xml: line 2: files include each other: ") {
		t.Errorf("circle: got %v", err)
	}
}

func TestMalformedFilesAreNamedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "line 1: no <configuration> element",
		"<configuration>\n<property>":        "line 2: unexpected EOF",
		"<configuration>\n<property></name>": "line 2: element <property> closed by </name>",
		"<properties/>":                      "line 1: bad conf file: top-level element not <configuration> but <properties>",
		"<configuration/>\nmore":             "line 2: text after the end of the document",
		"<configuration>\n&bomb;</configuration>":   "line 2: invalid character entity &bomb;",
		`<?xml version="1.0" encoding="EBCDIC"?>`:   `line 1: xml: opening charset "EBCDIC": encoding EBCDIC is not read; save the file as UTF-8`,
		"<configuration>\n\xff</configuration>":     "line 2: invalid UTF-8",
		"<configuration><include/></configuration>": "line 1: <include> without href",
	} {
		err := New().AddText("x.xml", []byte(text))
		if err == nil || err.Error() != "error parsing conf x.xml: "+want {
			t.Errorf("%q: got %v, want … %s", text, err, want)
		}
	}
}

func TestLatin1IsRead(t *testing.T) {
	c := New()
	if err := c.AddText("x.xml", []byte("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><configuration>"+property1("a", "caf\xe9")+"</configuration>")); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Get("a"); got != "café" {
		t.Errorf("got %q", got)
	}
}

// ha is the case that golibs' reader gets wrong: two nameservices, blanks, a
// key with fs.default in it, a variable.
const ha = `
<property><name>dfs.nameservices</name><value> ns1, ns2 ,single</value></property>
<property><name>dfs.ha.namenodes.ns1</name><value>nn1, nn2</value></property>
<property><name>dfs.namenode.rpc-address.ns1.nn1</name><value> h1:8020 </value></property>
<property><name>dfs.namenode.rpc-address.ns1.nn2</name><value>${second}</value></property>
<property><name>second</name><value>h2</value></property>
<property><name>dfs.client.failover.proxy.provider.ns1</name><value>org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider</value></property>
<property><name>dfs.ha.namenodes.ns2</name><value>a,b</value></property>
<property><name>dfs.namenode.rpc-address.ns2.a</name><value>other1:9000</value></property>
<property><name>dfs.namenode.rpc-address.ns2.b</name><value>other2:9000</value></property>
<property><name>dfs.namenode.rpc-address.single</name><value>[::1]:9000</value></property>
<property><name>dfs.default.chunk.view.size</name><value>32768</value></property>
<property><name>fs.defaultFS</name><value>hdfs://ns1</value></property>
<property><name>dfs.data.transfer.protection</name><value>authentication, privacy</value></property>
<property><name>dfs.blocksize</name><value>64m</value></property>
<property><name>hadoop.security.authentication</name><value>kerberos</value></property>
<property><name>dfs.namenode.kerberos.principal</name><value>nn/_HOST@EXAMPLE.COM</value></property>
`

func TestNameNodesOfANameservice(t *testing.T) {
	c := parsed(t, ha)
	for uri, want := range map[string]string{
		"hdfs://ns1/varve":   "h1:8020 h2:8020",
		"hdfs:///varve":      "h1:8020 h2:8020",
		"hdfs://single/":     "[::1]:9000",
		"hdfs://host/x":      "host:8020",
		"hdfs://host:9000/x": "host:9000",
		"hdfs://[::1]/x":     "[::1]:8020",
		"hdfs://ns2/":        "hdfs://ns2/: dfs.client.failover.proxy.provider.ns2 is not set, so ns2 would be looked up as a host",
		"file:///x":          "file:///x is not an hdfs:// URI",
		"hdfs://host:x/":     `parse "hdfs://host:x/": invalid port ":x" after host`,
	} {
		got, err := c.NameNodes(uri)
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s: got %s, want %s", uri, text, want)
		}
	}
	h, err := c.HDFS("hdfs://ns1/")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(h.DataTransferProtection, "+") != "authentication+privacy" || h.BlockSize != 64<<20 || h.Kerberos != "nn/_HOST@EXAMPLE.COM" ||
		!h.RandomOrder || h.FailoverAttempts != 15 || h.UmaskMode != "022" || h.Nameservice != "ns1" {
		t.Errorf("got %+v", h)
	}
}

func TestNoConfigurationAtAll(t *testing.T) {
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.NameNodes("hdfs:///x"); err == nil || err.Error() != "hdfs:///x names no NameNode and fs.defaultFS is file:///" {
		t.Errorf("got %v", err)
	}
	if got, err := c.NameNodes("hdfs://nn/x"); err != nil || got[0] != "nn:8020" {
		t.Errorf("got %v %v", got, err)
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "134217728": 128 << 20, "128m": 128 << 20, "1G": 1 << 30, "-1": -1} {
		if got, err := Size(s); err != nil || got != want {
			t.Errorf("%s: got %d %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "m", "12x", "1.5g", "9e"} {
		if got, err := Size(s); err == nil {
			t.Errorf("%s: got %d, want an error", s, got)
		}
	}
}

func FuzzAddText(f *testing.F) {
	f.Add([]byte("<configuration>" + ha + "</configuration>"))
	f.Add([]byte(`<configuration><property name="a" value="${a}${env.X:-}"/></configuration>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := New()
		if err := c.AddText("x.xml", text); err != nil {
			if !strings.Contains(err.Error(), "x.xml") {
				t.Fatalf("error without its file: %v", err)
			}
			return
		}
		for name := range c.props {
			if v, err := c.Get(name); err == nil && strings.TrimSpace(v) != v {
				t.Fatalf("%q is not trimmed", v)
			}
		}
	})
}

// Does a tool that starts for one command notice its site files?
func BenchmarkLoad(b *testing.B) {
	text := []byte("<configuration>" + strings.Repeat(property1("some.key.of.usual.length", "a value ${env.X}"), 60) + ha + "</configuration>")
	b.ReportAllocs()
	for b.Loop() {
		c := New()
		if err := c.AddText("hdfs-site.xml", text); err != nil {
			b.Fatal(err)
		}
		if _, err := c.HDFS("hdfs://ns1/"); err != nil {
			b.Fatal(err)
		}
	}
}
