// SPDX-License-Identifier: Apache-2.0

// Package rules tells the health of one object of OLM without any other, as Argo CD and Flux see it: a [Table] for each
// of the kinds Subscription, InstallPlan, ClusterServiceVersion and CatalogSource, of which the first row that matches
// is the answer.
//
// [Of] evaluates the table. From the same table [ArgoCD] writes the Lua script that Argo CD runs, and [Flux] the CEL
// expressions of a Flux Kustomization, so that the three agree. The folders argocd and flux beside this file hold what
// they write, to be copied without Go:
//
//   - argocd/*.lua, and argocd/argocd-cm.yaml with all of them: keys of the ConfigMap argocd-cm of Argo CD
//   - flux/kustomization.yaml: the healthCheckExprs of a Kustomization
//
// # Argo CD
//
//	kubectl patch configmap argocd-cm --namespace argocd --patch-file argocd/argocd-cm.yaml
//
// adds the keys resource.customizations.health.operators.coreos.com_Subscription and so on; Argo CD shows the health at
// once. A Subscription whose InstallPlan waits for its approval is Suspended.
//
// # Flux
//
// Copy spec.healthCheckExprs of flux/kustomization.yaml into the Kustomization that applies the objects, with
// spec.wait. What is Suspended, or Degraded and may recover by itself ([Row].Passes), is in progress until
// spec.timeout. Flux reports an error for an object without status, and looks again.
//
// One object cannot tell all: a Subscription does not say whether the version that it installed still works. Package
// health knows, as it sees all objects of a namespace.
package rules
