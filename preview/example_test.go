// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
)

// What approving a plan would do, in a cluster in which version 1 of an operator runs, and version 2 waits for
// approval.
func ExampleRun() {
	w := upgradetest.New(upgradetest.Failing{}, func(_, second *upgradetest.Bundle) {
		permissions := second.CSV.Spec.InstallStrategy.StrategySpec.Permissions
		permissions[0].Rules = append(permissions[0].Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	})
	ctx, reader, options := context.Background(), w.Cluster, w.OLM.Options
	p, err := preview.Run(ctx, reader, w.Plan(upgradetest.Failing{}), w.Cluster.Now(), options)
	if err != nil {
		fmt.Println(err)
	}
	for _, v := range p.Versions {
		fmt.Println(v.Replaces, "becomes", v.Name)
	}
	for _, g := range p.Permissions.Added {
		fmt.Printf("%s may %s in %s %v\n", g.Subject, g, g.Scope, g.Escalation)
	}
	for _, i := range p.Images {
		fmt.Println(i.Deployment, "runs", i.After, "instead of", i.Before)
	}
	fmt.Println("restarts:", len(p.Restarts), "blocked:", len(p.Blocked), "way back:", p.Undo.Possible)
	// Output:
	// vault.v1.0.0 becomes vault.v2.0.0
	// ServiceAccount ops/vault-operator may get secrets in namespace ops [secrets]
	// vault-operator runs registry.example.com/vault:2.0.0 instead of registry.example.com/vault:1.0.0
	// restarts: 1 blocked: 0 way back: true
}

// Run in its parts, for whoever wants to judge custom resources in a way of his own.
func ExampleGather() {
	w := upgradetest.New(upgradetest.Failing{}, func(_, second *upgradetest.Bundle) {
		spec := second.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Required = []string{"size"}
		second.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	})
	ctx := context.Background()
	in, err := preview.Gather(ctx, w.Cluster, w.Plan(upgradetest.Failing{}), w.Cluster.Now(), w.OLM.Options)
	if err != nil {
		fmt.Println(err)
	}
	p, err := preview.Simulate(ctx, in)
	for _, change := range p.SchemaChanges {
		fmt.Println("to judge:", change.Before.Name, change.Versions, err)
		in.CustomResources = olmcore.Found(installplan.ResourceVerdict{
			CustomResourceDefinition: change.Before.Name, Version: "v1", Namespace: "ops", Name: "gold", New: []string{"spec.size: Required value"},
		})
	}
	p, err = preview.Simulate(ctx, in)
	for _, d := range p.CustomResourceDefinitions {
		fmt.Println(d.Breaking, d.Refused, err)
	}
	// Output:
	// to judge: vaults.bank.example.com [v1] <nil>
	// [spec.versions[v1].schema.openAPIV3Schema.properties[spec].required] [{v1 ops gold spec.size: Required value}] <nil>
}

// What each approval would do, on the way to the newest version.
func ExampleHops() {
	w := upgradetest.New(upgradetest.Failing{}, func(_, second *upgradetest.Bundle) {
		second.CSV.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "keys.safe.example.com", Version: "v1", Kind: "Key"}}
	})
	ctx := context.Background()
	in, err := preview.GatherNamespace(ctx, w.Cluster, "ops", w.Cluster.Now(), w.OLM.Options)
	if err != nil {
		fmt.Println(err)
	}
	hops, err := preview.Hops(ctx, in, "vault")
	for _, p := range hops {
		fmt.Println(p.Versions[0].Name, p.Blocked)
	}
	fmt.Println(err)
	// Output:
	// vault.v2.0.0 [{ClusterServiceVersion ops/vault.v2.0.0 RequirementsNotMet one or more requirements couldn't be found: CustomResourceDefinition keys.safe.example.com is NotPresent}]
	// <nil>
}
