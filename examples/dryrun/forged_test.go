// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestATextOfATenantForgesNoPartOfTheReport checks that a text with line ends is shown as one line: a field of a spec,
// a requirement of a version, and the kind of a step.
func TestATextOfATenantForgesNoPartOfTheReport(t *testing.T) {
	const forged = `"x\n\nCatalogSource olm/community\n  delete       Pod olm/community-x"`
	for name, world := range map[string]string{
		"spec.sourceType": `{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: cat, namespace: evil},
  spec: {sourceType: ` + forged + `}}`,
		"spec.address": `{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: cat, namespace: evil},
  spec: {sourceType: grpc, address: ` + forged + `}}`,
		"a requirement": `{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: v1, namespace: evil},
  status: {phase: Pending, requirementStatus: [{
    group: g, version: v, kind: ` + forged + `, name: ` + forged + `, status: NotPresent, message: m,
    dependents: [{group: g, version: v, kind: ` + forged + `, status: NotSatisfied, message: ` + forged + `}]}]}}`,
		"a step of a plan": `{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, namespace: evil},
  spec: {targetNamespaces: [evil]}, status: {lastUpdated: "2026-01-01T00:00:00Z", namespaces: [evil]}}
---
{apiVersion: operators.coreos.com/v1alpha1, kind: InstallPlan, metadata: {name: plan, namespace: evil},
  spec: {approved: true, approval: Automatic, clusterServiceVersionNames: [v1]},
  status: {phase: Installing, startTime: "2026-01-01T11:59:00Z", plan: [{resolving: v1, status: Unknown, resource: {
    kind: ` + forged + `, name: ` + forged + `, group: "", version: v1,
    sourceName: c, sourceNamespace: evil, manifest: "{}"}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, out, errs := runDry(t, world, "--complete")
			require.Empty(t, errs)
			require.Contains(t, out, "CatalogSource olm/community   delete       Pod olm/community-x")
			require.NotContains(t, out, "\nCatalogSource olm/community\n")
			require.NotContains(t, out, "\n  delete       Pod")
		})
	}
}
