// SPDX-License-Identifier: Apache-2.0

package model

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/builtin"
	"github.com/olmcore/olm/olmcore"
)

// API is an API that an operator provides. An OperatorGroup lists its APIs in the annotation olm.providedAPIs as
// <Kind>.<version>.<group>, separated by commas.
type API struct{ Kind, Version, Group string }

// String returns <Kind>.<version>.<group>, as in the annotation.
func (a API) String() string { return a.Kind + "." + a.Version + "." + a.Group }

// Hash returns OLM's hash of an API, which is part of label keys. It is the 64-bit FNV-1a hash in hexadecimal digits.
func (a API) Hash() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.String()))
	return strconv.FormatUint(h.Sum64(), 16)
}

// GroupRoleSuffixes returns the name suffixes of the ClusterRoles for an API and for an OperatorGroup: admin, edit and
// view.
func GroupRoleSuffixes() []string { return []string{"admin", "edit", "view"} }

// AggregateLabel returns the label key by which the ClusterRole of an OperatorGroup selects a ClusterRole of an API.
// suffix is one of RoleSuffixes. The value of the label is "true".
func (a API) AggregateLabel(suffix string) string {
	return "olm.opgroup.permissions/aggregate-to-" + a.Hash() + "-" + suffix
}

// ProvidedAPIsAnnotation returns the value of the annotation olm.providedAPIs of an OperatorGroup, or an empty string
// if it has none. The annotation lists the APIs of the operators of the OperatorGroup.
func ProvidedAPIsAnnotation(g *operatorsv1.OperatorGroup) string {
	return g.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey]
}

// ListedAPIs returns the APIs in the annotation olm.providedAPIs of an OperatorGroup. Invalid entries are omitted.
func ListedAPIs(g *operatorsv1.OperatorGroup) []API {
	var list []API
	for entry := range strings.SplitSeq(ProvidedAPIsAnnotation(g), ",") {
		kind, rest, _ := strings.Cut(strings.TrimSpace(entry), ".")
		version, group, _ := strings.Cut(rest, ".")
		if kind != "" && version != "" && group != "" {
			list = append(list, API{kind, version, group})
		}
	}
	return list
}

// FormatAPIs returns the value of the annotation olm.providedAPIs for a list of APIs. The value is sorted and has no
// duplicates.
func FormatAPIs(list []API) string {
	names := make([]string, 0, len(list))
	for _, a := range list {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// ReasonProvidedAPIsChanged means that the annotation olm.providedAPIs of an OperatorGroup is updated. AnnotateAPIs
// returns that action. Nothing to do.
const ReasonProvidedAPIsChanged = "ProvidedAPIsChanged"

// AnnotateAPIs returns the action that sets the annotation olm.providedAPIs of an OperatorGroup to the APIs in list.
func AnnotateAPIs(g *operatorsv1.OperatorGroup, list []API) olmcore.Action {
	after := g.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupProvidedAPIsAnnotationKey, FormatAPIs(list))
	return olmcore.UpdateOf(g, after, olmcore.Cause{
		Reason:  ReasonProvidedAPIsChanged,
		Message: "annotation olm.providedAPIs of OperatorGroup " + g.Name + " does not match the APIs that its operators provide",
	})
}

// ProvidedAPIs returns the APIs that a CSV owns.
func ProvidedAPIs(c *CSV) []API {
	return apisOf(c.Spec.CustomResourceDefinitions.Owned, c.Spec.APIServiceDefinitions.Owned)
}

// RequiredAPIs returns the APIs that a CSV requires.
func RequiredAPIs(c *CSV) []API {
	return apisOf(c.Spec.CustomResourceDefinitions.Required, c.Spec.APIServiceDefinitions.Required)
}

// apisOf returns the APIs of descriptions of CRDs and APIServices.
func apisOf(crds []v1alpha1.CRDDescription, services []v1alpha1.APIServiceDescription) []API {
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

// IsBuiltInAPIGroup reports whether an API group belongs to Kubernetes or OLM. An operator must not add a version to
// such a group, because clients could use that version instead of the built-in one. It returns false for Kubernetes API
// groups that operators implement, such as metrics.k8s.io.
func IsBuiltInAPIGroup(name string) bool { return builtin.IsServed(name) }
