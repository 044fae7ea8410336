// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

const exampleCatalog = `
schema: olm.package
name: backup
defaultChannel: stable
---
schema: olm.channel
package: backup
name: stable
entries:
- {name: backup.v1.0.0}
- {name: backup.v2.0.0, replaces: backup.v1.0.0}
---
schema: olm.bundle
package: backup
name: backup.v1.0.0
image: registry.example/backup@sha256:1
properties:
- {type: olm.package, value: {packageName: backup, version: 1.0.0}}
---
schema: olm.bundle
package: backup
name: backup.v2.0.0
image: registry.example/backup@sha256:2
properties:
- {type: olm.package, value: {packageName: backup, version: 2.0.0}}
- {type: olm.package.required, value: {packageName: storage, versionRange: ">=3.0.0"}}
---
schema: olm.package
name: storage
defaultChannel: stable
---
schema: olm.channel
package: storage
name: stable
entries:
- {name: storage.v3.1.0}
---
schema: olm.bundle
package: storage
name: storage.v3.1.0
image: registry.example/storage@sha256:3
properties:
- {type: olm.package, value: {packageName: storage, version: 3.1.0}}
- {type: olm.gvk.required, value: {group: disk.example, version: v1, kind: Disk}}
`

func exampleInput(catalog string) resolution.Input {
	packages, _, err := fbc.Read("catalog.yaml", strings.NewReader(catalog), fbc.Options{Strict: true})
	if err != nil {
		panic(err)
	}
	content, _ := resolution.Build(packages)
	return resolution.Input{
		Namespace: "tools", OperatorGroups: oneGroup("tools"),
		Catalogs:      []resolution.CatalogState{{Key: types.NamespacedName{Namespace: "tools", Name: "cool"}, Content: content}},
		Subscriptions: []*v1alpha1.Subscription{subscription("tools", "backup", "backup", "stable", "tools/cool")},
	}
}

// A Subscription gets the head of its channel, and a Subscription is generated for what that needs.
func ExampleResolve() {
	in := exampleInput(strings.ReplaceAll(exampleCatalog, "- {type: olm.gvk.required, value: {group: disk.example, version: v1, kind: Disk}}\n", ""))
	result := resolution.Resolve(in)
	fmt.Println(result.Outcome)
	for _, op := range result.Operators {
		fmt.Println(op.Name, "from", op.Catalog, "channel", op.Channel, "for", op.For, "required by", op.RequiredBy)
	}
	for _, s := range result.Generated {
		fmt.Println("Subscription", s.Name)
	}
	// Output:
	// Resolved
	// backup.v2.0.0 from tools/cool channel stable for [backup] required by []
	// storage.v3.1.0 from tools/cool channel stable for [] required by [backup.v2.0.0]
	// Subscription storage-stable-cool-tools
}

// No bundle provides what the dependency of the newest version needs, so an older version is chosen, with the reason;
// a Subscription for the dependency itself has no solution, with the reason, and does not stop the other.
func ExampleResolve_unsatisfiable() {
	in := exampleInput(exampleCatalog)
	in.Subscriptions = append(in.Subscriptions, subscription("tools", "storage", "storage", "stable", "tools/cool"))
	result := resolution.Resolve(in)
	for _, op := range result.Operators {
		fmt.Println("install", op.Name)
	}
	for _, h := range result.HeldBack {
		fmt.Println(h.Code+":", h.Summary)
	}
	for _, core := range result.Cores {
		fmt.Println(core.Summary)
		fmt.Println(core.Message)
	}
	// Output:
	// install backup.v1.0.0
	// RequirementUnmet: Subscription backup does not get backup.v2.0.0: storage.v3.1.0 needs an operator that provides Disk (disk.example/v1), and no catalog visible from namespace tools has one; backup.v2.0.0 needs an operator of package storage in version >=3.0.0.
	// Subscription storage cannot be resolved: storage.v3.1.0 needs an operator that provides Disk (disk.example/v1), and no catalog visible from namespace tools has one.
	// constraints not satisfiable: bundle storage.v3.1.0 requires an operator providing an API with group: disk.example, version: v1, kind: Disk, subscription storage exists, subscription storage requires cool/tools/stable/storage.v3.1.0
}

// What would it mean to stay at version 1?
func ExampleWhatIf() {
	in := exampleInput(strings.ReplaceAll(exampleCatalog, "- {type: olm.gvk.required, value: {group: disk.example, version: v1, kind: Disk}}\n", ""))
	d, err := resolution.WhatIf(in, resolution.Change{Subscription: "backup", VersionRange: new("<2.0.0")})
	if err != nil {
		panic(err)
	}
	for _, s := range d.Subscriptions {
		fmt.Println(s.Subscription+":", s.Before.Target.Target, "->", s.After.Target.Target)
		fmt.Println(s.After.HeldBack.Summary)
	}
	for _, op := range d.Dropped {
		fmt.Println("not installed:", op.Name)
	}
	// Output:
	// backup: backup.v2.0.0 -> backup.v1.0.0
	// Subscription backup gets backup.v1.0.0: the version range "<2.0.0" (Input.Pins) does not allow backup.v2.0.0.
	// not installed: backup.v2.0.0
	// not installed: storage.v3.1.0
}

func ExampleExplain() {
	in := exampleInput(exampleCatalog)
	for _, bundle := range []string{"backup.v2.0.0", "backup.v1.0.0", "storage.v3.1.0", "unheard-of.v1.0.0"} {
		fmt.Println(resolution.Explain(in, "", bundle).Summary)
	}
	// Output:
	// Subscription backup does not get backup.v2.0.0: storage.v3.1.0 needs an operator that provides Disk (disk.example/v1), and no catalog visible from namespace tools has one; backup.v2.0.0 needs an operator of package storage in version >=3.0.0.
	// backup.v1.0.0 is installed from channel stable of catalog tools/cool for Subscription backup.
	// storage.v3.1.0 is in channel stable of package storage in catalog tools/cool, which no Subscription asks for, and nothing that is selected needs it. It could not be installed anyway: it needs an operator that provides Disk (disk.example/v1), and no catalog visible from namespace tools has one.
	// No catalog visible from namespace tools has unheard-of.v1.0.0.
}

// A catalog whose content the caller does not have counts as unavailable.
func ExampleGather() {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		&v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "cool"}},
		subscription("tools", "backup", "backup", "stable", "tools/cool"),
	}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := resolution.Gather(context.Background(), snapshot, "tools", "olm", nil)
	if err != nil {
		panic(err)
	}
	for _, c := range in.Catalogs {
		fmt.Println(c.Key, "known:", c.Content != nil)
	}
	fmt.Println(len(in.Subscriptions), "Subscription")
	// Output:
	// tools/cool known: false
	// 1 Subscription
}
