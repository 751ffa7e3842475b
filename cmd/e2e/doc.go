// Package e2e holds the tests with real processes: Varve as it is built, beside
// real ZooKeeper, HDFS, Kafka, and real clients. What they need is in the folders
// below it: servers fetches and starts the peers, oracle asks Varve and Kafka the
// same, devservers keeps a peer up for people. Scenarios read as sentences.
package e2e
