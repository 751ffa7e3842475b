// Package tier holds the tests of a broker whose tier is a real HDFS: what its users and
// operators see while HDFS is well, away, full, slow or lies elsewhere.
package tier
