// SPDX-License-Identifier: Apache-2.0

// Package group is what ClusterServiceVersions and OperatorGroups have to do with each other: the namespaces that an
// operator watches, the install modes that allow it, and the APIs that it provides, which its group lists.
package group

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// API is an API that an operator provides. OperatorGroups list theirs in an annotation, as <Kind>.<version>.<group>
// with commas between.
type API struct{ Kind, Version, Group string }

// String returns the form of the annotation.
func (a API) String() string { return a.Kind + "." + a.Version + "." + a.Group }

// Hash returns OLM's hash of an API, which is part of label keys: 64-bit FNV-1a in hexadecimal digits.
func (a API) Hash() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.String()))
	return strconv.FormatUint(h.Sum64(), 16)
}

// Parse reads an annotation that lists APIs. What names no API is left out.
func Parse(annotation string) []API {
	var list []API
	for entry := range strings.SplitSeq(annotation, ",") {
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

// provides reports whether a CSV provides an API.
func provides(c *owned.CSV, a API) bool { return slices.Contains(Provided(c), a) }

// SharesAPI returns the test for CSVs that provide an API which c provides too.
func SharesAPI(c *owned.CSV) func(*owned.CSV) bool {
	ours := sets.New(Provided(c)...)
	return func(o *owned.CSV) bool { return slices.ContainsFunc(Provided(o), ours.Has) }
}

// Annotation returns the annotation in which a group lists the APIs of its operators.
func Annotation(g *operatorsv1.OperatorGroup) string {
	return g.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey]
}

// ReasonProvidedAPIsChanged is the reason of the action of List.
const ReasonProvidedAPIsChanged = "ProvidedAPIsChanged"

// List returns the action that makes a group list these APIs.
func List(g *operatorsv1.OperatorGroup, list []API) olmcore.Action {
	after := g.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey] = Format(list)
	return olmcore.UpdateOf(g, after, olmcore.Cause{
		Reason: ReasonProvidedAPIsChanged, Message: "the annotation does not list what the operators of OperatorGroup " + g.Name + " provide",
	})
}

// IsShutOut reports whether a CSV was Failed, and its operator stopped, because of the APIs that it provides. One that
// is Failed because of its OperatorGroup in another way keeps its APIs: its operator may run on.
func IsShutOut(c *owned.CSV) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && (c.Status.Reason == v1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
		c.Status.Reason == v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}
