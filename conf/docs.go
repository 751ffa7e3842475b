package conf

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteDocs writes docs/configuration.md from the table.
func WriteDocs(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString(docsHead)
	for _, s := range []struct {
		title string
		keep  func(*Key) bool
	}{
		{"Topic configs", (*Key).forTopic},
		{"Varve's own", own},
		{"Broker configs in use", func(k *Key) bool { return k.forBroker() && k.Status == Used && !own(k) }},
		{"Accepted without effect", func(k *Key) bool { return k.forBroker() && k.Status == NoEffect }},
		{"Refused", func(k *Key) bool { return k.forBroker() && k.Status == Refused }},
	} {
		writeSection(b, s.title, s.keep)
	}
	return b.Flush()
}

const docsHead = `# Configuration keys

Made from the table in package conf; do not edit.

A broker reads server.properties, then variables that begin with VARVE_ (VARVE_NUM_PARTITIONS is num.partitions; two underscores
are one, three are a dash), then -D key=value; later ones win. A key that is not listed here is named in a warning and ignored. A
dynamic config changes while the broker runs: cluster-wide for all brokers or one, per-broker for one.
`

func own(k *Key) bool {
	for i := range varveKeys {
		if varveKeys[i].Name == k.Name {
			return true
		}
	}
	return false
}

func writeSection(b *bufio.Writer, title string, keep func(*Key) bool) {
	fmt.Fprintf(b, "\n## %s\n\n| key | type | default | valid | dynamic | |\n|---|---|---|---|---|---|\n", title)
	for i := range Keys {
		k := &Keys[i]
		if k.Internal || !keep(k) {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", k.Name, docsType(k), docsDefault(k), docsCell(k.Check.Text), docsDynamic(k), docsCell(docsText(k)))
	}
}

func docsType(k *Key) string {
	t := strings.ToLower(k.Type.String())
	if k.Unit != "" {
		t += ", " + string(k.Unit)
	}
	return t
}

func docsDefault(k *Key) string {
	switch {
	case k.Null:
		return "unset"
	case k.Default == "":
		return "empty"
	}
	return docsCell(k.Default)
}

func docsDynamic(k *Key) string {
	switch {
	case k.Scope == Topic:
		return "yes"
	case k.Update == ReadOnly:
		return ""
	}
	return k.Update.String()
}

func docsText(k *Key) string {
	text := k.Doc
	if k.Scope != Broker && len(k.Synonyms) > 0 {
		text += " Default of all topics: " + k.Synonyms[0].Name + "."
	}
	switch k.Status {
	case NoEffect:
		text += " No effect: " + k.Why + "."
	case Refused:
		text += " Refused: " + k.Why + "."
	}
	return text
}

func docsCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
