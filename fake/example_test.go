// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore/controller"
)

// A node falls silent: its Pod is marked for deletion and stays, until the node comes back.
func ExampleCluster() {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	_ = c.Node("a").Create(nil)
	_ = c.Node("b").Create(nil)
	_ = c.Create(newPod("p"))
	look := func() {
		_ = c.Settle()
		pod := fake.Find[*corev1.Pod](c, "ns", "p")
		if pod == nil {
			fmt.Println(c.Now().Format(time.TimeOnly), "gone")
			return
		}
		fmt.Println(c.Now().Format(time.TimeOnly), "on", pod.Spec.NodeName, pod.Status.Phase, "terminating:", pod.DeletionTimestamp != nil)
	}
	look()
	_ = c.Node("a").Fail()
	_ = c.RunFor(time.Hour)
	look()
	_ = c.Node("a").Heal()
	look()
	// Output:
	// 12:00:00 on a Running terminating: false
	// 13:00:00 on a Running terminating: true
	// 13:00:00 gone
}

// A Driver runs controllers until nothing changes any more, and tells what they did.
func ExampleDriver() {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	_ = c.Node("a").Create(nil)
	_ = c.Create(configMap("cool"))
	d := &fake.Driver{Cluster: c, Controllers: []controller.Controller{mirror()}}
	if err := d.RunUntilIdle(context.Background(), 30*time.Second); err != nil {
		fmt.Println(err)
	}
	fmt.Print(controller.Format(d.Events))
	// Output:
	// 12:00:00  mirror ns/cool: create Pod ns/cool (PodMissing)
	// 12:00:00  mirror ns/cool: CONNECTING -> READY (PodReady)
	// 12:00:00  mirror ns/cool: update ConfigMap ns/cool (PodReady)
}

// A controller whose cache of Pods is two turns behind asks for the Pod again, which is there by then, and comes to the
// same end.
func ExampleLag() {
	c := fake.NewCluster(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	_ = c.Node("a").Create(nil)
	_ = c.Create(configMap("cool"))
	d := &fake.Driver{Cluster: c, Controllers: []controller.Controller{mirror()}}
	d.Lags = map[string]fake.Lag{"mirror": {{Kind: "Pod"}: 2}}
	writes := 0
	d.AfterAction = func(controller.Event) error { writes++; return nil }
	err := d.Settle(context.Background())
	fmt.Println(writes, "writes,", fake.Find[*corev1.ConfigMap](c, "ns", "cool").Data, err)
	// Output:
	// 3 writes, map[ready:12:00:00] <nil>
}
