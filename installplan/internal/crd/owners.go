// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/versions"
)

// recordedOwners returns the values of those entries of the observed definition that
// counts accepts, sorted and each once. Only versions that a definition records count:
// anybody may claim to own what exists.
func (d Definition) recordedOwners(counts func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool) []string {
	entries, _ := Recorded(d.Observed.Annotations)
	var owners []string
	for _, value := range entries {
		namespace, name, ok := strings.Cut(value, "/")
		csv := d.Known.At(namespace, name)
		if csv != nil && (csv.IsCopied() || csv.DeletionTimestamp != nil || !versions.Owns(csv, d.Observed.Name)) {
			csv = nil
		}
		if ok && counts(namespace, name, csv) {
			owners = append(owners, value)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// newerOwner names a newer ClusterServiceVersion of the same package that needs the
// definition as it is, if that serves what this step's needs; empty for none.
func (d Definition) newerOwner() string {
	if len(d.Versions) == 0 {
		return ""
	}
	own := d.Known.Of(d.Versions[0])
	if own == nil {
		return ""
	}
	for _, o := range own.Spec.CustomResourceDefinitions.Owned {
		if v := versionOf(d.Observed, o.Version); o.Name == d.Observed.Name && (v == nil || !v.Served) {
			return ""
		}
	}
	newer := d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == d.Known.Namespace && (slices.Contains(d.Versions, name) || name == own.Spec.Replaces)
		return csv != nil && !mine && versions.IsNewer(csv, own)
	})
	if len(newer) == 0 {
		return ""
	}
	return newer[0]
}

// protectedOwners returns the live ClusterServiceVersions of other operators that
// brought the definition and own it, or are about to; none where the plan may change it
// all the same.
func (d Definition) protectedOwners() []string {
	if d.ChangeOwned || slices.Contains(strings.Split(d.Observed.Annotations[ChangeableBy], ","), d.Known.Namespace) {
		return nil
	}
	replaced := d.Known.Replaced(d.Versions)
	return d.recordedOwners(func(namespace, name string, csv *v1alpha1.ClusterServiceVersion) bool {
		mine := namespace == d.Known.Namespace && (replaced[name] || d.Known.Precedes(namespace, name, d.Versions))
		return !mine && (csv != nil || d.Known.IsAnnounced(namespace, name))
	})
}

// taken returns what after takes away from other owners of the observed definition; empty
// for nothing.
func (d Definition) taken(after *apiextensionsv1.CustomResourceDefinition) string {
	have := d.Observed
	listed := slices.ContainsFunc(d.Versions, func(name string) bool {
		csv := d.Known.Of(name)
		return csv != nil && versions.Owns(csv, have.Name)
	})
	switch {
	case !listed && !apiequality.Semantic.DeepEqual(have.Spec, after.Spec):
		return "its spec, by a step of none that owns it,"
	case !sameConversion(have.Spec.Conversion, after.Spec.Conversion):
		return "spec.conversion"
	}
	return Narrowed(have, after)
}

// convertedByOthers reports that a live ClusterServiceVersion keeps the conversion
// webhook of the observed definition.
func (d Definition) convertedByOthers() bool {
	conversion := d.Observed.Spec.Conversion
	if !Converts(conversion) {
		return false
	}
	keeps := func(csv *v1alpha1.ClusterServiceVersion) bool {
		return csv.DeletionTimestamp == nil && !csv.IsCopied() &&
			slices.ContainsFunc(csv.Spec.WebhookDefinitions, func(w v1alpha1.WebhookDescription) bool {
				return w.Type == v1alpha1.ConversionWebhook && slices.Contains(w.ConversionCRDs, d.Observed.Name)
			})
	}
	for _, csv := range d.Known.Here {
		if keeps(csv) {
			return true
		}
	}
	for _, csv := range d.Known.Elsewhere {
		if keeps(csv) && convertsIn(conversion, csv.Namespace) { // another cannot answer there
			return true
		}
	}
	return false
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

// sameConversion compares who converts custom resources; the certificate by which the
// API server knows it is filled in by others.
func sameConversion(a, b *apiextensionsv1.CustomResourceConversion) bool {
	plain := func(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
		if !Converts(c) {
			return nil
		}
		c = c.DeepCopy()
		if c.Webhook != nil && c.Webhook.ClientConfig != nil {
			c.Webhook.ClientConfig.CABundle = nil
			if s := c.Webhook.ClientConfig.Service; s != nil && s.Port == nil {
				s.Port = new(int32(443))
			}
		}
		return c
	}
	return apiequality.Semantic.DeepEqual(plain(a), plain(b))
}
