package site_test

import (
	"fmt"

	"varve/conf/site"
)

func Example() {
	c := site.New()
	err := c.AddText("hdfs-site.xml", []byte(`<configuration>
  <property><name>dfs.nameservices</name><value>ns1</value></property>
  <property><name>dfs.ha.namenodes.ns1</name><value>nn1, nn2</value></property>
  <property><name>dfs.namenode.rpc-address.ns1.nn1</name><value>master1:8020</value></property>
  <property><name>dfs.namenode.rpc-address.ns1.nn2</name><value>master2</value></property>
  <property><name>dfs.client.failover.proxy.provider.ns1</name><value>x.ConfiguredFailoverProxyProvider</value></property>
</configuration>`))
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := c.HDFS("hdfs://ns1/varve")
	fmt.Println(h.Nameservice, h.NameNodes, err)
	// Output: ns1 [master1:8020 master2:8020] <nil>
}
