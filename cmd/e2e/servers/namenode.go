package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// NameNode is one NameNode and where it listens.
type NameNode struct {
	ID   string // in a pair: "nn1" or "nn2"; else empty
	RPC  string // HOST:PORT for clients
	HTTP string // HOST:PORT of /jmx and WebHDFS
	*Daemon
}

// JMX returns the attributes of one of its beans, such as
// "Hadoop:service=NameNode,name=NameNodeStatus". Counters of metrics beans are
// cached by the server for ten seconds, states are not.
func (n *NameNode) JMX(ctx context.Context, bean string) (map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+n.HTTP+"/jmx?qry="+url.QueryEscape(bean), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct{ Beans []map[string]any }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading bean %s of %s: %w", bean, n.HTTP, err)
	}
	if len(answer.Beans) != 1 {
		return nil, fmt.Errorf("reading bean %s of %s: there are %d", bean, n.HTTP, len(answer.Beans))
	}
	return answer.Beans[0], nil
}

// State returns "active" or "standby" without starting a JVM.
func (n *NameNode) State(ctx context.Context) (string, error) {
	bean, err := n.JMX(ctx, "Hadoop:service=NameNode,name=NameNodeStatus")
	if err != nil {
		return "", err
	}
	state, _ := bean["State"].(string)
	return state, nil
}

// serves is nil once the NameNode is out of safe mode and so many DataNodes can
// take blocks: a node that is registered but has not reported its disks yet
// would be passed over.
func (n *NameNode) serves(ctx context.Context, nodes int) error {
	bean, err := n.JMX(ctx, "Hadoop:service=NameNode,name=NameNodeInfo")
	if err != nil {
		return err
	}
	if why, _ := bean["Safemode"].(string); why != "" {
		return errors.New(why)
	}
	var live map[string]struct{ Capacity int64 }
	list, _ := bean["LiveNodes"].(string)
	if err := json.Unmarshal([]byte(list), &live); err != nil {
		return fmt.Errorf("reading LiveNodes of %s: %w", n.HTTP, err)
	}
	able := 0
	for _, node := range live {
		if node.Capacity > 0 {
			able++
		}
	}
	if able < nodes {
		return fmt.Errorf("%d of %d DataNodes have reported their disks to %s", able, nodes, n.HTTP)
	}
	return nil
}

// listens is the ready test of a NameNode's process; safe mode may last longer.
func (n *NameNode) listens(ctx context.Context) error {
	return errors.Join(accepts(ctx, n.RPC), accepts(ctx, n.HTTP))
}
