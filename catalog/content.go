// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// Address returns the address from which the content of a CatalogSource can be read, as host:port. If the source type
// is grpc and spec.image is empty, Address returns spec.address. Otherwise it returns the address of the Service of the
// CatalogSource, even if the Service does not exist yet.
//
// Address returns an empty string if the CatalogSource is nil or being deleted, or if its spec is invalid. Address does
// not use the status, because other clients may have written it.
func Address(source *v1alpha1.CatalogSource) string {
	switch {
	case source == nil || source.DeletionTimestamp != nil || checkSpec(source).reason != "":
		return ""
	case source.Spec.SourceType == v1alpha1.SourceTypeGrpc && source.Spec.Image == "":
		return source.Spec.Address
	}
	return (&registry.Registry{Source: source}).Address()
}

// Content returns an identifier of the content that the registry Pods of a CatalogSource serve: the digest of their
// image, or the version of the ConfigMap. The identifier is empty if the content comes from spec.address, if no Pod is
// ready, or if ready Pods serve different content. If settled is true, no Pod with other content is still being
// deleted, so every new connection reads this content.
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
