// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// recordedOwners returns the values of those entries of the observed definition that counts accepts, sorted and each
// once. Only versions that a definition records count: anybody may claim to own what exists.
func (d definition) recordedOwners(counts func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool) []string {
	entries, _ := Recorded(d.have)
	var owners []string
	for _, value := range entries {
		namespace, name, ok := strings.Cut(value, "/")
		csv := d.w.version(namespace, name)
		if csv != nil && (csv.IsCopied() || csv.DeletionTimestamp != nil || !owns(csv, d.have.Name)) {
			csv = nil
		}
		if ok && counts(namespace, name, csv) {
			owners = append(owners, value)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// newerOwner names a newer ClusterServiceVersion of the same package that needs the definition as it is, if that serves
// what this step's needs; empty for none.
func (d definition) newerOwner() string {
	if len(d.t.Versions) == 0 {
		return ""
	}
	own := d.w.known(d.t.Versions[0])
	if own == nil {
		return ""
	}
	for _, o := range own.Spec.CustomResourceDefinitions.Owned {
		if v := versionOf(d.have, o.Version); o.Name == d.have.Name && (v == nil || !v.Served) {
			return ""
		}
	}
	newer := d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == d.w.Plan.Namespace && (slices.Contains(d.t.Versions, name) || name == own.Spec.Replaces)
		return csv != nil && !mine && packagePrefix(name) == packagePrefix(own.Name) && csv.Spec.Version.GT(own.Spec.Version.Version)
	})
	if len(newer) == 0 {
		return ""
	}
	return newer[0]
}

// protectedOwners returns the live ClusterServiceVersions of other operators that brought the definition and own it, or
// are about to; none where the plan may change it all the same.
func (d definition) protectedOwners() []string {
	w, namespaces := d.w, strings.Split(d.have.Annotations[changeableBy], ",")
	if w.ChangeOwnedCRDs || slices.Contains(namespaces, w.Plan.Namespace) {
		return nil
	}
	replaced := w.replaced(d.t.Versions)
	return d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == w.Plan.Namespace && (replaced[name] || w.precedes(namespace, name, d.t.Versions))
		return !mine && (csv != nil || w.isAnnounced(namespace, name))
	})
}

// takes returns what after takes away from other owners of the observed definition; empty for nothing.
func (d definition) takes(after *apiextensionsv1.CustomResourceDefinition) string {
	listed := slices.ContainsFunc(d.t.Versions, func(name string) bool {
		csv := d.w.known(name)
		return csv != nil && owns(csv, d.have.Name)
	})
	switch {
	case !listed && !apiequality.Semantic.DeepEqual(d.have.Spec, after.Spec):
		return "its spec, by a step of none that owns it,"
	case !apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(after)):
		return "spec.conversion"
	}
	return narrowed(d.have, after)
}

// convertedByOthers reports that a live ClusterServiceVersion keeps the conversion webhook of the observed definition.
// One of another namespace cannot where the webhook is no Service of its own.
func (d definition) convertedByOthers() bool {
	conversion := d.have.Spec.Conversion
	return Converts(conversion) && slices.ContainsFunc(slices.Concat(d.w.ClusterServiceVersions, d.w.Alongside), func(csv *v1alpha1.ClusterServiceVersion) bool {
		return csv.DeletionTimestamp == nil && !csv.IsCopied() && (csv.Namespace == d.w.Plan.Namespace || convertsIn(conversion, csv.Namespace)) &&
			slices.ContainsFunc(csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
				return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, d.have.Name)
			})
	})
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
