// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/resolution"
)

// The loop that a program runs with queues and watches. Here it lists the keys and runs each of them once.
func ExampleSet_Runners() {
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
		runner.OnReport = func(report controller.Report) { fmt.Print(report) }
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

// A change that a watch reports becomes keys for the queue of each controller.
func ExampleSet_Runners_changed() {
	ctx, cluster := context.Background(), fake.NewCluster(noon)
	runners := controllers.New(&controllers.Options{}).Runners(cluster, cluster)
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-x"}}
	for _, runner := range runners {
		keys, err := runner.Changed(ctx, cluster, controller.Change{New: plan, At: cluster.Now()})
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

// All keys of all controllers, once: for commands and scheduled jobs.
func ExamplePass() {
	ctx, cluster := context.Background(), fake.NewCluster(noon)
	cluster.AutoCreateNamespaces = true
	if err := cluster.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "tenants"}}); err != nil {
		panic(err)
	}
	set := controllers.New(&controllers.Options{})
	if err := set.Only(controllers.Group); err != nil { // without it all
		panic(err)
	}
	runners := set.Runners(cluster, cluster)
	err := controller.Pass(ctx, runners, cluster.Now)
	group := fake.Find[*operatorsv1.OperatorGroup](cluster, "ops", "tenants")
	fmt.Printf("%q %v\n", group.Status.Namespaces, err)
	// Output:
	// [""] <nil>
}

// What keeps the controllers from working in a cluster is said before they start.
func ExamplePreflight() {
	cluster := fake.NewCluster(noon)
	err := controllers.Preflight{
		Reader: cluster, Options: controllers.Options{KubernetesVersion: "v1.19.0"}, Ignore: []string{"crds"},
	}.Run(context.Background())
	fmt.Println(err)
	// Output:
	// the API server is Kubernetes 1.19.0, and 1.21 is the oldest that serves all kinds that are needed: update the cluster
}

// The rules of a ClusterRole for what some controllers do, and no more.
func ExampleOptions_Rights() {
	for _, rule := range (controllers.Options{}).Rights(controllers.Group).Cluster {
		fmt.Println(rule.APIGroups, rule.Resources, rule.Verbs)
	}
	// Output:
	// [] [namespaces serviceaccounts] [get list watch patch]
	// [] [pods secrets services] [get list watch]
	// [admissionregistration.k8s.io] [mutatingwebhookconfigurations validatingwebhookconfigurations] [get list watch]
	// [apiextensions.k8s.io] [customresourcedefinitions] [get list watch]
	// [apiregistration.k8s.io] [apiservices] [get list watch]
	// [apps] [deployments] [get list watch]
	// [events.k8s.io] [events] [create patch]
	// [operators.coreos.com] [clusterserviceversions installplans olmconfigs operatorconditions subscriptions] [get list watch]
	// [operators.coreos.com] [operatorgroups] [get list watch patch]
	// [operators.coreos.com] [operatorgroups/status] [patch]
	// [rbac.authorization.k8s.io] [clusterrolebindings rolebindings roles] [get list watch]
	// [rbac.authorization.k8s.io] [clusterroles] [get list watch create patch escalate]
}

// Content of catalogs from files makes the controllers resolve.
func ExampleCatalogs() {
	packages := []resolution.Package{{
		Name: "etcd", DefaultChannel: "stable",
		Channels: []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: "etcd.v1"}}}},
		Bundles: []resolution.Bundle{{Name: "etcd.v1", Bundle: olmcore.Bundle{Image: "registry.example.com/etcd:v1", Properties: []olmcore.Property{
			{Type: resolution.PropertyPackage, Value: []byte(`{"packageName":"etcd","version":"1.0.0"}`)},
		}}}},
	}} // or controllers.ReadCatalog, of a file
	content, problems := resolution.Build(packages)
	catalogs := controllers.Catalogs{
		GlobalNamespace: "olm",
		Content:         map[types.NamespacedName]*resolution.Catalog{{Namespace: "olm", Name: "community"}: content},
	}
	var options controllers.Options
	catalogs.Serve(&options)
	fmt.Println(len(problems), "problems, resolves:", options.Resolve != nil)
	// Output:
	// 0 problems, resolves: true
}
