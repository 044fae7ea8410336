// SPDX-License-Identifier: Apache-2.0

// Package rules tells the health of one object of OLM without any other, as Argo CD and Flux see it: a [Table] for each of the
// kinds Subscription, InstallPlan, ClusterServiceVersion and CatalogSource, of which the first row that matches is the answer.
//
// [Of] evaluates the table. From the same table [ArgoCD] writes the Lua script that Argo CD runs, and [Flux] the CEL
// expressions of a Flux Kustomization, so that the three agree. The folders argocd and flux beside this file hold what
// they write, to be copied without Go:
//
//   - argocd/*.lua, and argocd/argocd-cm.yaml with all of them: keys of the ConfigMap argocd-cm of Argo CD
//   - flux/kustomization.yaml: the healthCheckExprs of a Kustomization
//
// One object cannot tell all: a Subscription does not say whether the version that it installed still works. Package health
// knows, as it sees all objects of a namespace.
package rules
