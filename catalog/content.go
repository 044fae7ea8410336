// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Address returns what to dial for the content of a CatalogSource, host:port: its address, or its own Service, whether that
// is there or not; empty when its spec cannot be used, or it is being deleted. Its status does not count: anybody may have
// written that.
func Address(source *v1alpha1.CatalogSource) string {
	switch {
	case source == nil || source.DeletionTimestamp != nil || checkSpec(source).reason != "":
		return ""
	case source.Spec.SourceType == v1alpha1.SourceTypeGrpc && source.Spec.Image == "":
		return source.Spec.Address
	}
	return (&registry.Registry{Source: source}).Address()
}

// Content identifies what the registry of a CatalogSource serves, as its Pods tell: the digest of their image, or the
// version of the ConfigMap. It is empty where that is not known: for an address, without a ready Pod, and while ready Pods
// serve different content. settled says that no Pod with other content still ends: what a connection reads that is made now
// is that content.
func Content(in Input) (content string, settled bool) {
	if in.CatalogSource == nil {
		return "", false
	}
	serving, ending := map[string]bool{}, map[string]bool{}
	for _, pod := range in.Pods.Items {
		if pod == nil || pod.Labels[registry.LabelServing] != in.CatalogSource.Name || pod.Labels[olmcore.LabelManaged] != "true" {
			continue
		}
		served := cmp.Or(pod.Labels[registry.LabelConfigMapVersion], imageID(pod))
		switch {
		case pod.DeletionTimestamp != nil:
			ending[served] = true
		case podCondition(pod, corev1.PodReady).Status == corev1.ConditionTrue:
			serving[served] = true
		}
	}
	if len(serving) != 1 {
		return "", false
	}
	for content = range serving {
		delete(ending, content)
	}
	return content, content != "" && len(ending) == 0
}
