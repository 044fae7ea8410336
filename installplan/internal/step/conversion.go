// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// confineConversion makes the desired definition of a plan that runs as an account ask for conversions in the plan's
// namespace alone, or says why it cannot. The API server reaches addresses and namespaces that the account does not.
// Bundles name a Service of any namespace, and package csv writes the right one later. A conversion that exists is left
// as it is.
func (d definition) confineConversion() (problem string) {
	conversion := d.desired.Spec.Conversion
	isConfigured := Converts(conversion) && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil
	isKept := d.have != nil && apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(d.desired))
	if !d.w.isConfined() || !isConfigured || isKept {
		return ""
	}
	if conversion.Webhook.ClientConfig.URL != nil {
		return "a plan that runs as a ServiceAccount may not set spec.conversion.webhook.clientConfig.url"
	}
	if service := conversion.Webhook.ClientConfig.Service; service != nil {
		service.Namespace = d.w.Plan.Namespace
	}
	return ""
}

// convertedByOthers reports that a live ClusterServiceVersion keeps the conversion webhook of the observed definition.
// One of another namespace cannot where the webhook is no Service of its own.
func (d definition) convertedByOthers() bool {
	conversion := d.have.Spec.Conversion
	versions := slices.Concat(d.w.ClusterServiceVersions, d.w.Alongside)
	return Converts(conversion) && slices.ContainsFunc(versions, func(csv *v1alpha1.ClusterServiceVersion) bool {
		mayConvert := csv.Namespace == d.w.Plan.Namespace || convertsIn(conversion, csv.Namespace)
		return mayConvert && csv.DeletionTimestamp == nil && !csv.IsCopied() &&
			slices.ContainsFunc(csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
				return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, d.have.Name)
			})
	})
}

// mayKeepConversion reports whether the step may be served by the observed definition as far as its conversion goes: it
// is the one that the step describes, or the one of a live ClusterServiceVersion, as in change.
func (d definition) mayKeepConversion() bool {
	return d.convertedByOthers() || apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(d.desired))
}

// sayConvertedElsewhere reports that a Service of another namespace converts the custom resources, and goes on to.
// Whoever brings a definition first may have done so to read what others create.
func (d definition) sayConvertedElsewhere() []olmcore.Diagnostic {
	namespace := d.w.Plan.Namespace
	if !d.convertedByOthers() || convertsIn(d.have.Spec.Conversion, namespace) {
		return nil
	}
	by := "another namespace"
	client := d.have.Spec.Conversion.Webhook.ClientConfig
	if client != nil && client.Service != nil {
		by = "Service " + client.Service.Name + " of namespace " + client.Service.Namespace
	}
	return []olmcore.Diagnostic{d.w.about(d.t.Steps[0], olmcore.Warning, report.ConvertedElsewhere,
		"CustomResourceDefinition %s: %s converts its custom resources, and so reads and rewrites those of all namespaces", d.have.Name, by)}
}

// Converts reports whether a webhook converts custom resources.
func Converts(c *apiextensionsv1.CustomResourceConversion) bool {
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter
}

// convertsIn reports whether a conversion is that of a Service of a namespace.
func convertsIn(c *apiextensionsv1.CustomResourceConversion, namespace string) bool {
	return c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil &&
		c.Webhook.ClientConfig.Service.Namespace == namespace
}

// conversionOf returns who converts the custom resources of a definition, nil for none. The certificate by which the
// API server knows it is filled in by others.
func conversionOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceConversion {
	c := crd.Spec.Conversion.DeepCopy()
	if !Converts(c) {
		return nil
	}
	if c.Webhook != nil && c.Webhook.ClientConfig != nil {
		c.Webhook.ClientConfig.CABundle = nil
		if s := c.Webhook.ClientConfig.Service; s != nil && s.Port == nil {
			s.Port = new(int32(443))
		}
	}
	return c
}
