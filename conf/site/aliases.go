package site

// deprecated are old names and the new ones. A file may use either; both are
// answered. Those that a client of HDFS meets, of Hadoop's longer table.
var deprecated = [][2]string{
	{"fs.default.name", "fs.defaultFS"},
	{"dfs.block.size", "dfs.blocksize"},
	{"dfs.umaskmode", "fs.permissions.umask-mode"},
	{"dfs.umask", "fs.permissions.umask-mode"},
	{"dfs.federation.nameservices", "dfs.nameservices"},
	{"dfs.federation.nameservice.id", "dfs.nameservice.id"},
	{"dfs.write.packet.size", "dfs.client-write-packet-size"},
	{"dfs.replication.min", "dfs.namenode.replication.min"},
	{"dfs.permissions", "dfs.permissions.enabled"},
	{"dfs.permissions.supergroup", "dfs.permissions.superusergroup"},
	{"dfs.http.address", "dfs.namenode.http-address"},
	{"dfs.https.address", "dfs.namenode.https-address"},
	{"hadoop.native.lib", "io.native.lib.available"},
	{"dfs.socket.timeout", "dfs.client.socket-timeout"},
}

// aliases are the names that a key goes by, itself first.
func aliases(name string) []string {
	names := []string{name}
	for _, d := range deprecated {
		switch name {
		case d[0]:
			names = append(names, d[1])
		case d[1]:
			names = append(names, d[0])
		}
	}
	return names
}
