// SPDX-License-Identifier: Apache-2.0

// Package group relates ClusterServiceVersions to OperatorGroups. It computes the namespaces that an operator watches,
// and whether its install modes support them. It also compares the APIs that an operator provides with those that
// OperatorGroups list.
package group

import (
	"cmp"
	"fmt"
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

// RoleSuffixes returns the name suffixes of the ClusterRoles for an API and for an OperatorGroup: admin, edit and view.
func RoleSuffixes() []string { return []string{"admin", "edit", "view"} }

// AggregateLabel returns the label key by which the ClusterRole of an OperatorGroup selects a ClusterRole of an API.
// suffix is one of RoleSuffixes. The value of the label is "true".
func (a API) AggregateLabel(suffix string) string {
	return "olm.opgroup.permissions/aggregate-to-" + a.Hash() + "-" + suffix
}

// Annotation returns the value of the annotation olm.providedAPIs of an OperatorGroup, or an empty string if it has
// none. The annotation lists the APIs of the operators of the OperatorGroup.
func Annotation(g *operatorsv1.OperatorGroup) string {
	return g.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey]
}

// Listed returns the APIs in the annotation olm.providedAPIs of an OperatorGroup. Invalid entries are omitted.
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

// Format returns the value of the annotation olm.providedAPIs for a list of APIs. The value is sorted and has no
// duplicates.
func Format(list []API) string {
	names := make([]string, 0, len(list))
	for _, a := range list {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// ReasonProvidedAPIsChanged means that the annotation olm.providedAPIs of an OperatorGroup is updated. List returns
// that action. Nothing to do.
const ReasonProvidedAPIsChanged = "ProvidedAPIsChanged"

// List returns the action that sets the annotation olm.providedAPIs of an OperatorGroup to the APIs in list.
func List(g *operatorsv1.OperatorGroup, list []API) olmcore.Action {
	after := g.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupProvidedAPIsAnnotationKey, Format(list))
	return olmcore.UpdateOf(g, after, olmcore.Cause{
		Reason:  ReasonProvidedAPIsChanged,
		Message: "annotation olm.providedAPIs of OperatorGroup " + g.Name + " does not match the APIs that its operators provide",
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

// apis returns the APIs of descriptions of CRDs and APIServices.
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

// IsShutOut reports whether a CSV is Failed because of a conflict about the APIs that it provides. The operator of such
// a CSV was stopped. IsShutOut returns false for other problems with OperatorGroups, because then the operator may
// still run.
func IsShutOut(c *owned.CSV) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && (c.Status.Reason == v1alpha1.CSVReasonInterOperatorGroupOwnerConflict ||
		c.Status.Reason == v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs)
}

// Claim contains the result of comparing the APIs of a CSV with the APIs that OperatorGroups list.
type Claim struct {
	// Listed is true if the CSV's own OperatorGroup lists all APIs of the CSV.
	Listed bool
	// Conflict is another OperatorGroup that lists an API of the CSV, and watches a namespace that the CSV's OperatorGroup
	// watches too. It is nil if there is none. Contested is the API that both provide.
	Conflict  *operatorsv1.OperatorGroup
	Contested API
	// Lost is true if the OperatorGroup in Conflict keeps the contested API.
	Lost bool
}

// ClaimOf compares the APIs that a CSV provides with the APIs that OperatorGroups list. own is the OperatorGroup of the
// CSV, and others contains further OperatorGroups. providers contains CSVs of other namespaces. neighbours contains
// CSVs of the CSV's namespace.
//
// If there are several conflicts, ClaimOf returns one for which Lost is true, if there is one. Among equal conflicts,
// it returns the one with the first OperatorGroup by namespace and name.
func ClaimOf(c *owned.CSV, own *operatorsv1.OperatorGroup, others []*operatorsv1.OperatorGroup, providers, neighbours []*owned.CSV) Claim {
	provided := Provided(c)
	claim := Claim{Listed: sets.New(Listed(own)...).HasAll(provided...)}
	for _, other := range others {
		if other.Namespace == own.Namespace && other.Name == own.Name || !Intersect(own, other) {
			continue
		}
		listed := sets.New(Listed(other)...)
		for _, a := range provided {
			if !listed.Has(a) {
				continue
			}
			next := Claim{Listed: claim.Listed, Conflict: other, Contested: a, Lost: isLost(c, a, own, other, providers, neighbours)}
			if claim.Conflict == nil || next.comesBefore(claim) {
				claim = next
			}
		}
	}
	return claim
}

// comesBefore reports whether a Claim is reported rather than another.
func (c Claim) comesBefore(o Claim) bool {
	if c.Lost != o.Lost {
		return c.Lost
	}
	return olmcore.RefOf(c.Conflict).Compare(olmcore.RefOf(o.Conflict)) < 0
}

// isLost decides between two groups that list the same API, in the same way on both sides. A group with static APIs
// keeps its APIs against a group without, even if no operator in its namespace provides them. Otherwise the operators
// decide.
func isLost(c *owned.CSV, a API, own, other *operatorsv1.OperatorGroup, providers, neighbours []*owned.CSV) bool {
	if own.Spec.StaticProvidedAPIs != other.Spec.StaticProvidedAPIs {
		return other.Spec.StaticProvidedAPIs
	}
	return isWeaker(c, a, other, providers, neighbours)
}

// isWeaker reports whether the operator of another group has the better claim to an API. Both sides decide in the same
// way. A CSV that is Succeeded is preferred, then the older one.
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

// compareProviders orders CSVs that provide the same API. The first one keeps it.
func compareProviders(a, b *owned.CSV) int {
	return cmp.Or(
		chain.CompareSucceeded(a, b),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}

// Targets is the set of namespaces that an operator watches. It contains sorted names, or one empty name for all
// namespaces. An empty set means no namespace, never all namespaces.
type Targets []string

// All reports whether the operator watches all namespaces.
func (t Targets) All() bool { return len(t) == 1 && t[0] == metav1.NamespaceAll }

// Contains reports whether the operator watches a namespace.
func (t Targets) Contains(namespace string) bool { return t.All() || slices.Contains(t, namespace) }

// Named returns the names of the targets, sorted and without duplicates. The empty name, which means all namespaces, is
// omitted.
func (t Targets) Named() Targets {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(t)), func(n string) bool { return n == metav1.NamespaceAll })
	return slices.Compact(names)
}

// String describes the targets in words, for example "all namespaces". Messages use it.
func (t Targets) String() string {
	switch {
	case t.All():
		return "all namespaces"
	case len(t) == 0:
		return "no namespace"
	case len(t) == 1:
		return "namespace " + t[0]
	}
	return "namespaces " + strings.Join(t, ", ")
}

// TargetsOf returns the targets in the status of an OperatorGroup. computed is false if the status has not been written
// yet.
func TargetsOf(g *operatorsv1.OperatorGroup) (t Targets, computed bool) {
	t = slices.Clone(g.Status.Namespaces)
	slices.Sort(t)
	return t, len(t) > 0 || g.Status.LastUpdated != nil
}

// AnnotatedTargets returns the targets in the annotation olm.targetNamespaces of a CSV. ok is false if the annotation
// does not exist, for example because the OperatorGroup selects no namespace.
func AnnotatedTargets(c *owned.CSV) (t Targets, ok bool) {
	value, ok := c.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !ok {
		return nil, false
	}
	return strings.Split(value, ","), true
}

// Alone returns the only OperatorGroup of a namespace. It returns nil if the namespace has no OperatorGroup or several.
// count is the number of OperatorGroups in the namespace.
func Alone(groups []*operatorsv1.OperatorGroup, namespace string) (g *operatorsv1.OperatorGroup, count int) {
	for _, item := range groups {
		if item.Namespace == namespace {
			g, count = item, count+1
		}
	}
	if count != 1 {
		return nil, count
	}
	return g, 1
}

// IsMember reports whether the annotations of a CSV name the OperatorGroup g.
func IsMember(c *owned.CSV, g *operatorsv1.OperatorGroup) bool {
	return c.Annotations[operatorsv1.OperatorGroupAnnotationKey] == g.Name &&
		c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey] == g.Namespace
}

// watches reports whether a namespace is a group's own or one of its targets.
func watches(g *operatorsv1.OperatorGroup, namespace string) bool {
	return namespace == g.Namespace || Targets(g.Status.Namespaces).Contains(namespace)
}

// Intersect reports whether two OperatorGroups watch a common namespace. Intersect treats the namespace of an
// OperatorGroup as watched, even if that namespace is not a target.
func Intersect(a, b *operatorsv1.OperatorGroup) bool {
	return Targets(a.Status.Namespaces).All() || watches(b, a.Namespace) ||
		slices.ContainsFunc(a.Status.Namespaces, func(namespace string) bool { return watches(b, namespace) })
}

// Unsupported returns a message if the install modes of a CSV do not allow the operator to watch the targets of its
// OperatorGroup. Otherwise it returns an empty string.
//
// Source: operator-framework/api pkg/operators/v1alpha1, InstallModeSet.Supports.
func Unsupported(c *owned.CSV, t Targets) string {
	supports := func(mode v1alpha1.InstallModeType) bool {
		i := slices.IndexFunc(c.Spec.InstallModes, func(m v1alpha1.InstallMode) bool { return m.Type == mode })
		return i >= 0 && c.Spec.InstallModes[i].Supported
	}
	switch {
	case len(t) == 0:
		return "operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces"
	case len(t) > 1 && !supports(v1alpha1.InstallModeTypeMultiNamespace):
		return unsupported(v1alpha1.InstallModeTypeMultiNamespace, fmt.Sprintf("%d namespaces", len(t)))
	case t.All() && !supports(v1alpha1.InstallModeTypeAllNamespaces):
		return unsupported(v1alpha1.InstallModeTypeAllNamespaces, "all namespaces")
	case len(t) == 1 && !t.All() && t[0] != c.Namespace && !supports(v1alpha1.InstallModeTypeSingleNamespace):
		return unsupported(v1alpha1.InstallModeTypeSingleNamespace, "one namespace")
	}
	return unsupportedNamespace(c, t, supports(v1alpha1.InstallModeTypeOwnNamespace))
}

// unsupportedNamespace returns why one of the targets cannot be watched, although their number is supported.
func unsupportedNamespace(c *owned.CSV, t Targets, supportsOwn bool) string {
	for _, namespace := range t {
		switch {
		case namespace == c.Namespace && !supportsOwn:
			return unsupported(v1alpha1.InstallModeTypeOwnNamespace, "own namespace")
		case namespace == metav1.NamespaceAll && len(t) > 1:
			return "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"
		}
	}
	return ""
}

func unsupported(mode v1alpha1.InstallModeType, what string) string {
	return fmt.Sprintf("%s InstallModeType not supported, cannot configure to watch %s", mode, what)
}
