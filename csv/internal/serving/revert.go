// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/owned"
)

// IsConverted reports whether the conversion webhook of a CRD calls the Service of a Deployment of the CSV. It includes
// Deployments that no webhook description names.
func IsConverted(c *owned.CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.Service == nil {
		return false
	}
	service := conversion.Webhook.ClientConfig.Service
	return service.Namespace == c.Namespace && slices.ContainsFunc(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(d v1alpha1.StrategyDeploymentSpec) bool {
		return service.Name == ServiceName(d.Name)
	})
}

// Unconverted returns a copy of a CRD with the conversion strategy None, and without owned.AnnotationConvertedBy.
func Unconverted(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	after := crd.DeepCopy()
	after.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	delete(after.Annotations, owned.AnnotationConvertedBy)
	return after
}
