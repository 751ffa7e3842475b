package conf

// Why a key of Kafka's has no effect here or is refused, once for all the keys
// of its kind. Each sentence stands behind "has no effect: " or "is refused: ".
const (
	noThreads            = "each connection has a goroutine of its own that reads, serves and answers in place; Go's scheduler spreads them over the cores"
	noPurgatory          = "waiting requests sit in lists and one timer wheel that need no purge"
	noMetrics            = "metrics are served at /metrics and /jmx of the HTTP listener, counted since the start"
	noReplication        = "this version runs one broker"
	noQuota              = "this version has no quotas"
	noCompaction         = "this version keeps every record of a compacted topic"
	noTransactions       = "this version has no transactions"
	noConsumerProtocol   = "this version has the classic group protocol only"
	noStreamsGroups      = "this version has no streams groups"
	noShareGroups        = "this version has no share groups"
	noCoordinatorThreads = "a group's state changes in place when its record is appended"
	noKRaft              = "cluster metadata is an edit log of Varve's own, not a Raft quorum"
	noZooKeeper          = "a standalone broker keeps its metadata in a file journal"
	noGeneratedID        = "a node's id is the one in its configuration"
	noConfluent          = "it is Confluent's own"
	noSecurity           = "this version has PLAINTEXT listeners only, open to everyone"
	noUnstable           = "what is offered here is final"
	noTLS                = "this version has no TLS: use a PLAINTEXT listener and remove the ssl keys"
	noSASL               = "this version has no SASL: use a PLAINTEXT listener and remove the key"
	noJavaClass          = "a Java class cannot run here: remove the key"
	oneStart             = "listeners open together, when the broker can serve"
	oneProtocol          = "brokers agree on versions by themselves"
	onlyV2               = "batches are stored and served in format 2 only"
	useTierURL           = "the store is named by tier.url"
	manifestIsMetadata   = "the list of tiered segments lies beside them in the tier"
	useTierCache         = "tier.cache.dir and tier.cache.bytes say where and how much is cached"
	useTierPace          = "copying is paced by itself and bounded by tier.copy.max.bytes.per.second"
)
