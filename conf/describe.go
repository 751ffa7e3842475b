package conf

// ConfigSource says in DescribeConfigs where a value is from. The numbers are
// the protocol's.
type ConfigSource int8

const (
	SourceUnknown              ConfigSource = 0
	SourceTopic                ConfigSource = 1
	SourceDynamicBroker        ConfigSource = 2
	SourceDynamicDefaultBroker ConfigSource = 3
	SourceStaticBroker         ConfigSource = 4
	SourceDefault              ConfigSource = 5
	SourceBrokerLogger         ConfigSource = 6
)

// Entry is one config as DescribeConfigs and CreateTopics answer it.
type Entry struct {
	Name      string
	Value     *string // nil where there is none or it is sensitive
	Source    ConfigSource
	Synonyms  []EntrySynonym // the one that counts first
	Type      Type
	ReadOnly  bool
	Sensitive bool
	Doc       string
}

// EntrySynonym is one setting of a config or of a synonym.
type EntrySynonym struct {
	Name   string
	Value  *string
	Source ConfigSource
}

// TopicEntries describes all topic configs, by name; own are the topic's.
func (c *Config) TopicEntries(own map[string]string) []Entry {
	var entries []Entry
	t := topicValues{c, own}
	for i := range Keys {
		k := &Keys[i]
		if !k.forTopic() || k.Internal {
			continue
		}
		value := Format(t.value(k.Name))
		e := Entry{Name: k.Name, Value: &value, Type: k.Type, Doc: k.Doc}
		if _, set := own[k.Name]; set {
			e.Synonyms = append(e.Synonyms, EntrySynonym{k.Name, &value, SourceTopic})
		}
		if len(k.Synonyms) > 0 {
			e.Synonyms = append(e.Synonyms, c.synonyms(exact(k.Synonyms[0].Name))...)
		}
		e.Source = sourceOf(e.Synonyms)
		entries = append(entries, e)
	}
	return entries
}

// BrokerEntries describes this broker's configs: every known one, and what its
// file sets beyond, whose value is not shown because its type is not known.
func (c *Config) BrokerEntries() []Entry {
	var entries []Entry
	for i := range Keys {
		k := &Keys[i]
		if !k.forBroker() || k.Internal || k.Family() {
			continue
		}
		e := Entry{Name: k.Name, Type: k.Type, ReadOnly: k.Update == ReadOnly, Sensitive: k.Sensitive(), Doc: k.Doc, Synonyms: c.synonyms(k)}
		if v := c.own(k); v != nil && !e.Sensitive {
			text := Format(v)
			e.Value = &text
		}
		e.Source = sourceOf(e.Synonyms)
		entries = append(entries, e)
	}
	for name, settings := range c.settings {
		if k := exact(name); k == nil || !k.forBroker() {
			source := layerSource(settings[0].Origin.Layer)
			entries = append(entries, Entry{Name: name, Source: source, ReadOnly: true, Sensitive: true,
				Synonyms: []EntrySynonym{{name, nil, source}}})
		}
	}
	return entries
}

// own is a key's value without its synonyms: log.retention.ms has none when
// log.retention.hours is set.
func (c *Config) own(k *Key) any {
	if v, ok := c.values[k.Name]; ok {
		return v
	}
	if k.Null {
		return nil
	}
	return k.defaultValue()
}

// synonyms lists what gives a broker key its value: by layer, within a layer
// by precedence of the names. As in Kafka what stands before the key's own
// first setting is left out, and so is everything where it has none:
// log.retention.ms of a broker that sets log.retention.hours has no synonyms.
func (c *Config) synonyms(k *Key) []EntrySynonym {
	names := []string{k.Name}
	for _, s := range k.Synonyms {
		if s.Name != k.Name {
			names = append(names, s.Name)
		}
	}
	var all []EntrySynonym
	add := func(name, value string, source ConfigSource) {
		if name != k.Name && len(all) == 0 {
			return
		}
		s := EntrySynonym{Name: name, Source: source}
		if !k.Sensitive() {
			s.Value = &value
		}
		all = append(all, s)
	}
	for _, source := range []ConfigSource{SourceDynamicBroker, SourceDynamicDefaultBroker, SourceStaticBroker} {
		for _, name := range names {
			for _, s := range c.settings[name] {
				if layerSource(s.Origin.Layer) == source {
					add(name, s.Value, source)
					break // flags over environment over file: one static value
				}
			}
		}
	}
	for _, name := range names {
		if k := exact(name); !k.Null {
			add(name, Format(k.defaultValue()), SourceDefault)
		}
	}
	return all
}

func layerSource(l Layer) ConfigSource {
	switch l {
	case Default:
		return SourceDefault
	case DynamicDefault:
		return SourceDynamicDefaultBroker
	case DynamicBroker:
		return SourceDynamicBroker
	}
	return SourceStaticBroker
}

func sourceOf(synonyms []EntrySynonym) ConfigSource {
	if len(synonyms) == 0 {
		return SourceDefault
	}
	return synonyms[0].Source
}
