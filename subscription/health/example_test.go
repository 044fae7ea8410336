// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

// cluster is the output of kubectl for a namespace whose operator does not start.
const cluster = `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: ops, name: group, uid: "1", resourceVersion: "1"}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {namespace: ops, name: etcd, uid: "2", resourceVersion: "2"}
spec: {name: etcd, channel: stable, source: cool, sourceNamespace: olm}
status:
  state: AtLatestKnown
  currentCSV: etcd.v1
  installedCSV: etcd.v1
  lastUpdated: "2026-03-01T10:00:00Z"
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {namespace: ops, name: etcd.v1, uid: "3", resourceVersion: "3"}
spec: {install: {strategy: deployment, spec: {deployments: [{name: etcd, spec: {selector: {matchLabels: {app: etcd}}}}]}}}
status: {phase: Installing, reason: InstallWaiting, message: installing, lastTransitionTime: "2026-03-01T10:00:40Z"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: ops, name: etcd, uid: "4", resourceVersion: "4"}
spec: {selector: {matchLabels: {app: etcd}}}
---
apiVersion: v1
kind: Pod
metadata: {namespace: ops, name: etcd-5d9f-x2, uid: "5", resourceVersion: "5", labels: {app: etcd}}
status:
  containerStatuses:
  - name: manager
    image: quay.io/cool/etcd:1
    state: {waiting: {reason: ImagePullBackOff, message: "Back-off pulling image"}}
`

// read returns a reader of the cluster.
func read() (*olmcore.Snapshot, error) {
	documents, err := decode.Read("ops.yaml", strings.NewReader(cluster))
	if err != nil {
		return nil, err
	}
	objects, err := decode.Distinct(documents)
	if err != nil {
		return nil, err
	}
	return olmcore.NewSnapshot(objects, olmcore.Everything)
}

// gathered reads the namespace at a given time.
func gathered() (health.Input, error) {
	reader, err := read()
	if err != nil {
		return health.Input{}, err
	}
	in, err := health.Gather(context.Background(), reader, "ops", subscription.Config{})
	in.Now = time.Date(2026, 3, 1, 10, 5, 0, 0, time.UTC)
	return in, err
}

// No controller has to run if the reader is one of the adapters, or the output of kubectl.
func ExampleGather() {
	reader, err := read()
	if err != nil {
		panic(err)
	}
	in, err := health.Gather(context.Background(), reader, "ops", subscription.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 3, 1, 10, 5, 0, 0, time.UTC)
	answers, err := health.Assess(in) // by the name of the Subscription
	fmt.Println(answers["etcd"].Phase, answers["etcd"].Reason, err)
	// Output: Installing ImagePullBackOff <nil>
}

func ExampleAssess() {
	in, err := gathered()
	if err != nil {
		panic(err)
	}
	answers, err := health.Assess(in)
	if err != nil {
		panic(err)
	}
	text, err := json.MarshalIndent(answers["etcd"], "", "  ")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	// Output:
	// {
	//   "subscription": {
	//     "apiVersion": "operators.coreos.com/v1alpha1",
	//     "kind": "Subscription",
	//     "namespace": "ops",
	//     "name": "etcd",
	//     "uid": "2"
	//   },
	//   "phase": "Installing",
	//   "reason": "ImagePullBackOff",
	//   "message": "container manager, image quay.io/cool/etcd:1: ImagePullBackOff: Back-off pulling image",
	//   "object": {
	//     "apiVersion": "v1",
	//     "kind": "Pod",
	//     "namespace": "ops",
	//     "name": "etcd-5d9f-x2",
	//     "uid": "5"
	//   },
	//   "since": "2026-03-01T10:00:40Z",
	//   "advice": "Make the image available: correct its name, mirror it, or give the ServiceAccount of Pod ops/etcd-5d9f-x2 a pull secret."
	// }
}

func ExampleSummarize() {
	in, err := gathered()
	if err != nil {
		panic(err)
	}
	answers, err := health.Assess(in)
	if err != nil {
		panic(err)
	}
	var fleet health.Summary
	fleet = fleet.Merge(health.Summarize(answers)) // and so on, for each namespace of each cluster
	fmt.Println(fleet.Subscriptions, fleet.Worst, fleet.Phases)
	for _, h := range fleet.Act {
		fmt.Println(h.Subscription, h.Phase, h.Reason)
		fmt.Println(h.Advice)
	}
	// Output:
	// 1 Installing map[Installing:1]
	// Subscription ops/etcd Installing ImagePullBackOff
	// Make the image available: correct its name, mirror it, or give the ServiceAccount of Pod ops/etcd-5d9f-x2 a pull secret.
}
