// SPDX-License-Identifier: Apache-2.0

// Package rules assesses the health of one object of OLM without reading other objects, in the terms of Argo CD and
// Flux. It has one [Table] for each of the kinds Subscription, InstallPlan, ClusterServiceVersion and CatalogSource.
// The first row that applies to an object is the answer.
//
// [Of] evaluates the table. [ArgoCD] generates the Lua script for Argo CD from the same table, and [Flux] generates
// the CEL expressions for a Flux Kustomization, so all three agree. The folders argocd and flux
// below subscription/health/rules contain the generated files, which can be copied without Go:
//
//   - argocd/*.lua, and argocd/argocd-cm.yaml with all of them: keys of the ConfigMap argocd-cm of Argo CD
//   - flux/kustomization.yaml: the healthCheckExprs of a Kustomization
//
// # Argo CD
//
//	kubectl patch configmap argocd-cm --namespace argocd --patch-file argocd/argocd-cm.yaml
//
// adds the keys resource.customizations.health.operators.coreos.com_Subscription and so on. Argo CD then shows the
// health at once. A Subscription whose InstallPlan waits for approval is Suspended.
//
// # Flux
//
// Copy spec.healthCheckExprs of flux/kustomization.yaml into the Kustomization that applies the objects, and set
// spec.wait. Flux waits for an object until spec.timeout if it is Suspended, or Degraded with [Row].Passes set. If an
// object has no status, Flux reports an error and evaluates again.
//
// One object does not show everything: a Subscription does not record whether the version that it installed still
// works. Package health reports that, because it reads all objects of a namespace.
package rules
