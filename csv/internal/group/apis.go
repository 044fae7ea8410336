// SPDX-License-Identifier: Apache-2.0

// Package group is what ClusterServiceVersions and OperatorGroups have to do with each other: the namespaces that an
// operator watches, the install modes that allow it, and the APIs that it provides, which its group lists.
package group

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// API is an API that an operator provides. OperatorGroups list theirs in an annotation, as <Kind>.<version>.<group> with
// commas between.
type API struct{ Kind, Version, Group string }

// String returns the form of the annotation.
func (a API) String() string { return a.Kind + "." + a.Version + "." + a.Group }

// Hash returns OLM's hash of an API, which is part of label keys: 64-bit FNV-1a in hexadecimal digits.
func (a API) Hash() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.String()))
	return strconv.FormatUint(h.Sum64(), 16)
}

// Annotation returns the annotation in which a group lists the APIs of its operators.
func Annotation(g *operatorsv1.OperatorGroup) string {
	return g.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey]
}

// Listed returns the APIs that a group lists. What names no API is left out.
func Listed(g *operatorsv1.OperatorGroup) []API {
	var list []API
	for entry := range strings.SplitSeq(Annotation(g), ",") {
		kind, rest, _ := strings.Cut(strings.TrimSpace(entry), ".")
		version, group, _ := strings.Cut(rest, ".")
		if kind != "" && version != "" && group != "" {
			list = append(list, API{kind, version, group})
		}
	}
	return list
}

// Format writes an annotation: sorted, each API once.
func Format(list []API) string {
	names := make([]string, 0, len(list))
	for _, a := range list {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// ReasonProvidedAPIsChanged is the reason of the action of List.
const ReasonProvidedAPIsChanged = "ProvidedAPIsChanged"

// List returns the action that makes a group list these APIs.
func List(g *operatorsv1.OperatorGroup, list []API) olmcore.Action {
	after := g.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupProvidedAPIsAnnotationKey, Format(list))
	return olmcore.UpdateOf(g, after, olmcore.Cause{
		Reason: ReasonProvidedAPIsChanged, Message: "the annotation does not list what the operators of OperatorGroup " + g.Name + " provide",
	})
}

// Provided returns the APIs that a CSV owns.
func Provided(c *owned.CSV) []API {
	return apis(c.Spec.CustomResourceDefinitions.Owned, c.Spec.APIServiceDefinitions.Owned)
}

// Required returns the APIs that a CSV requires.
func Required(c *owned.CSV) []API {
	return apis(c.Spec.CustomResourceDefinitions.Required, c.Spec.APIServiceDefinitions.Required)
}

func apis(crds []v1alpha1.CRDDescription, services []v1alpha1.APIServiceDescription) []API {
	list := make([]API, 0, len(crds)+len(services))
	for _, d := range crds {
		_, group, _ := strings.Cut(d.Name, ".")
		list = append(list, API{d.Kind, d.Version, group})
	}
	for _, d := range services {
		list = append(list, API{d.Kind, d.Version, d.Group})
	}
	return list
}

// IsShutOut reports whether a CSV was Failed, and its operator stopped, because of the APIs that it provides. One that
// is Failed because of its OperatorGroup in another way keeps its APIs: its operator may run on.
func IsShutOut(c *owned.CSV) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && (c.Status.Reason == v1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
		c.Status.Reason == v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}

// Claim is how the APIs of a CSV compare with those that OperatorGroups list.
type Claim struct {
	// Listed: the own group lists them all.
	Listed bool
	// Conflict is another group that watches one of our namespaces and lists one of them, nil when there is none.
	// Contested is that API.
	Conflict  *operatorsv1.OperatorGroup
	Contested API
	// Lost: the other group has the better claim.
	Lost bool
}

// ClaimOf compares the APIs that a CSV provides with what its group and others list. providers are CSVs of other
// namespaces, neighbours those of its own. Of several conflicts one that is lost comes first, then the group with the
// lowest name.
func ClaimOf(c *owned.CSV, own *operatorsv1.OperatorGroup, others []*operatorsv1.OperatorGroup, providers, neighbours []*owned.CSV) Claim {
	provided := Provided(c)
	claim := Claim{Listed: sets.New(Listed(own)...).HasAll(provided...)}
	for _, other := range others {
		if other.Namespace == own.Namespace && other.Name == own.Name || !intersect(own, other) {
			continue
		}
		listed := sets.New(Listed(other)...)
		for _, a := range provided {
			if !listed.Has(a) {
				continue
			}
			next := Claim{Listed: claim.Listed, Conflict: other, Contested: a, Lost: isWeaker(c, a, other, providers, neighbours)}
			if claim.Conflict == nil || next.comesBefore(claim) {
				claim = next
			}
		}
	}
	return claim
}

func (c Claim) comesBefore(o Claim) bool {
	if c.Lost != o.Lost {
		return c.Lost
	}
	return olmcore.RefOf(c.Conflict).Compare(olmcore.RefOf(o.Conflict)) < 0
}

// isWeaker decides between two groups that list the same API, in the same way on both sides: an operator that runs
// keeps what it has, then the older one.
func isWeaker(c *owned.CSV, a API, other *operatorsv1.OperatorGroup, providers, neighbours []*owned.CSV) bool {
	theirs := best(nil, a, other.Namespace, providers)
	return theirs != nil && compareProviders(theirs, best(c, a, c.Namespace, neighbours)) < 0
}

// best returns the CSV of a namespace with the best claim to an API.
func best(c *owned.CSV, a API, namespace string, others []*owned.CSV) *owned.CSV {
	for _, o := range others {
		if o.Namespace == namespace && !o.IsCopied() && slices.Contains(Provided(o), a) && (c == nil || compareProviders(o, c) < 0) {
			c = o
		}
	}
	return c
}

func compareProviders(a, b *owned.CSV) int {
	return cmp.Or(
		chain.CompareSucceeded(a, b),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}
