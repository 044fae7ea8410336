// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

// unmanagedCRD decides about a CustomResourceDefinition that was not handed to
// OLM: it may be used where it serves what the step wants, and is not written.
func (e *evaluation) unmanagedCRD(have, desired *apiextensionsv1.CustomResourceDefinition) verdict {
	if field := narrowed(desired, have); field != "" {
		return verdict{outcome: blocked, message: unmanagedMessage(kindCRD, have.Name, field)}
	}
	return e.awaitEstablished(have)
}

// isManagedCRD: OLM notes who brought a definition on each that it writes, and
// labels it since 0.26.
func isManagedCRD(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if isManaged(crd) {
		return true
	}
	for key := range crd.Annotations {
		if strings.HasPrefix(key, alongsidePrefix) {
			return true
		}
	}
	return false
}

// respectOwners refuses to make after of a CustomResourceDefinition that live
// ClusterServiceVersions of other operators own, when that takes something away
// from them. What it does not refuse keeps their conversion, labels and
// annotations.
func (e *evaluation) respectOwners(t *target, have, after *apiextensionsv1.CustomResourceDefinition) verdict {
	owners := e.otherOwners(t, have)
	if len(owners) == 0 || e.d.in.Config.ChangeOwnedCRDs || listed(have.Annotations[e.d.in.Config.changeableKey()], e.plan.Namespace) {
		return verdict{}
	}
	refuse := func(field string) verdict {
		return verdict{outcome: blocked, message: fmt.Sprintf("CustomResourceDefinition %s is owned by %s too, and %s would change for it",
			have.Name, strings.Join(owners, ", "), field)}
	}
	if !slices.ContainsFunc(t.operators(), func(name string) bool {
		csv := e.resolvingCSV(name)
		return csv != nil && owns(csv, have.Name)
	}) && !apiequality.Semantic.DeepEqual(have.Spec, after.Spec) {
		return refuse("its spec, by a step of none that owns it,")
	}
	if !sameConversion(have.Spec.Conversion, after.Spec.Conversion) {
		return refuse("spec.conversion")
	}
	if field := narrowed(have, after); field != "" {
		return refuse(field)
	}
	after.Spec.Conversion = have.Spec.Conversion.DeepCopy()
	after.Labels, after.Annotations = have.DeepCopy().Labels, have.DeepCopy().Annotations
	return verdict{}
}

// otherOwners returns the live ClusterServiceVersions of other operators that
// brought a CustomResourceDefinition and own it, or are about to, sorted. Only those
// that it records count: anybody may claim to own what exists.
func (e *evaluation) otherOwners(t *target, have *apiextensionsv1.CustomResourceDefinition) []string {
	var owners []string
	replaced := e.replaced(t)
	for key, value := range have.Annotations {
		namespace, name, ok := strings.Cut(value, "/")
		if !ok || !strings.HasPrefix(key, alongsidePrefix) || namespace == e.plan.Namespace && (replaced[name] || e.precedes(namespace, name, t)) {
			continue
		}
		csv := e.csvAt(namespace, name)
		if e.isAnnounced(namespace, name) || csv != nil && !copied(csv) && csv.DeletionTimestamp == nil && owns(csv, have.Name) {
			owners = append(owners, value)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// replaced returns the ClusterServiceVersions that a target is made for, and
// those that they replace or skip, directly or through others.
func (e *evaluation) replaced(t *target) map[string]bool {
	found := map[string]bool{}
	for open := t.operators(); len(open) > 0; open = open[1:] {
		name := open[0]
		if name == "" || found[name] {
			continue
		}
		found[name] = true
		if csv := e.resolvingCSV(name); csv != nil {
			open = append(append(open, csv.Spec.Replaces), csv.Spec.Skips...)
		}
	}
	return found
}

// sameConversion compares who converts custom resources; the certificate by
// which the API server knows it is filled in by others.
func sameConversion(a, b *apiextensionsv1.CustomResourceConversion) bool {
	plain := func(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
		if c == nil || c.Strategy != apiextensionsv1.WebhookConverter {
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

const unmanagedMiddle = " exists, is not managed by OLM, and differs from the step"

// unmanagedMessage says that an unmanaged object is in the way, and what to do
// about it.
func unmanagedMessage(kind, name, field string) string {
	if field != "" {
		field = " in " + field
	}
	return fmt.Sprintf("%s %s%s%s; label it %s=true to hand it over, or remove it", kind, name, unmanagedMiddle, field, olmcore.LabelManaged)
}
