// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
)

// The loop that a framework runs with queues and watches, here over everything and once: list the keys, run each.
func ExampleRunner() {
	ctx, cluster := context.Background(), fake.NewCluster(noon)
	cluster.AutoCreateNamespaces = true
	if err := cluster.Create(&v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "example.com/catalog:v1"},
	}); err != nil {
		fmt.Println(err)
	}

	set := controllers.New(&controllers.Options{KubernetesVersion: "v1.36.2"})
	for _, runner := range set.Runners(cluster, cluster) {
		runner.Told = func(report controllers.Report) { fmt.Print(report) }
		keys, err := runner.Keys(ctx, cluster)
		if err != nil {
			fmt.Println(err)
		}
		for _, key := range keys {
			again, err := runner.Run(ctx, key, cluster.Now())
			fmt.Println(runner.Name, key, "again after", again, err)
		}
	}
	// Output:
	// catalog olm/community: create ServiceAccount olm/community (ObjectMissing)
	// catalog olm/community: create NetworkPolicy olm/community-grpc-server (ObjectMissing)
	// catalog olm/community: create NetworkPolicy olm/community-unpack-bundles (ObjectMissing)
	// catalog olm/community: create Service olm/community (ObjectMissing)
	// catalog olm/community: create Pod olm/community-rmih3rftvj (PodMissing)
	// catalog olm/community: updateStatus CatalogSource olm/community (StatusChanged)
	// catalog olm/community again after 1s <nil>
}

// What a watch delivers becomes keys for the queue of each controller.
func ExampleRunner_Changed() {
	ctx, cluster := context.Background(), fake.NewCluster(noon)
	runners := controllers.New(&controllers.Options{}).Runners(cluster, cluster)
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-x"}}
	for _, runner := range runners {
		keys, err := runner.Changed(ctx, cluster, controllers.Change{New: plan, At: cluster.Now()})
		if err != nil {
			fmt.Println(err)
		}
		if len(keys) > 0 {
			fmt.Println(runner.Name, keys)
		}
	}
	// Output:
	// installplan [ops/install-x]
}
