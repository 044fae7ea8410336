// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// facts contains the classified objects of an Input. observe fills it once. Afterwards it is read-only.
type facts struct {
	in *Input // as the caller passed it
	// ref references the original, also if it does not exist.
	ref olmcore.Ref
	// named is the ClusterServiceVersion with the key. source is the same if it is an original. Both may be nil.
	source, named *v1alpha1.ClusterServiceVersion
	// targets contains the namespaces that the operator watches. isCopiable is false if the original has no copies.
	targets    model.Targets
	isCopiable bool
	// annotated contains the target namespaces in the annotation of the original.
	annotated sets.Set[string]
	// config is the OLMConfig that has an effect, or nil. toggle is its setting that disables copies.
	config *operatorsv1.OLMConfig
	toggle model.CopyToggle
	// terminating contains the names of the namespaces that are being deleted.
	terminating sets.Set[string]
	// others contains the ClusterServiceVersions with the same name in other namespaces, sorted by namespace.
	others []other
}

// other is a ClusterServiceVersion of another namespace that has the name of the original.
type other struct {
	csv *v1alpha1.ClusterServiceVersion
	// isCopy reports whether it is a copy of the original.
	isCopy bool
	// deleteFor is the cause to delete it, or the zero value if it stays.
	deleteFor olmcore.Cause
	// content describes the content of a slim copy. The content of a whole copy is compared only if the result is needed.
	content content
	isSlim  bool
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	f := &facts{in: in, terminating: sets.New[string]()}
	f.named, _ = model.Find(in.Sources.Items, in.Key.Namespace, in.Key.Name)
	f.ref = olmcore.Ref{
		APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind,
		Namespace: in.Key.Namespace, Name: in.Key.Name,
	}
	if f.named != nil {
		f.ref = olmcore.RefOf(f.named).Unversioned()
	}
	if f.named != nil && !f.named.IsCopied() {
		f.source = f.named
		g, _ := model.OnlyGroup(in.OperatorGroups.Items, in.Key.Namespace)
		f.targets, f.isCopiable = model.CopyTargets(f.source, g)
		annotated, _ := model.AnnotatedTargets(f.source)
		f.annotated = sets.New(annotated...)
	}
	f.config, _ = model.Find(in.OLMConfigs.Items, "", model.OLMConfigName)
	f.toggle = model.CopyToggleOf(f.config, in.Config.ProtectedNamespaces)
	for _, n := range in.Namespaces.Items {
		if model.IsTerminating(n) {
			f.terminating.Insert(n.Name)
		}
	}
	f.others = observeOthers(f)
	return f
}

// observeOthers returns the ClusterServiceVersions with the name of the original, sorted by namespace.
func observeOthers(f *facts) []other {
	others := make([]other, 0, len(f.in.Copies.Items))
	for _, c := range f.in.Copies.Items {
		if c.Name == f.in.Key.Name && c.Namespace != f.in.Key.Namespace {
			isCopy := model.IsCopyOf(f.in.Key, c)
			content, isSlim := slimContent(c)
			others = append(others, other{c, isCopy, deletionCause(f, c, isCopy), content, isSlim})
		}
	}
	slices.SortFunc(others, func(a, b other) int { return strings.Compare(a.csv.Namespace, b.csv.Namespace) })
	return others
}

// otherIn returns the ClusterServiceVersion with the name of the original in a namespace, or nil.
func (f *facts) otherIn(namespace string) *other {
	i, exists := slices.BinarySearchFunc(f.others, namespace, func(o other, namespace string) int {
		return strings.Compare(o.csv.Namespace, namespace)
	})
	if !exists {
		return nil
	}
	return &f.others[i]
}

// unread returns the names of the needed lists that were not read.
func (f *facts) unread() []string {
	names := slices.Concat(
		read.Missing(f.in.Sources, "ClusterServiceVersions"),
		read.Missing(f.in.Copies, "ClusterServiceVersions of other namespaces"),
	)
	if f.source == nil {
		return names
	}
	names = append(names, read.Missing(f.in.OperatorGroups, "OperatorGroups")...)
	if f.isCopiable {
		names = append(names, read.Missing(f.in.Namespaces, "Namespaces")...)
	}
	if f.isCopiable && f.targets.All() {
		names = append(names, read.Missing(f.in.OLMConfigs, "OLMConfigs (whether copies are disabled)")...)
		if saysWhether(f.config) {
			names = append(names, read.Missing(f.in.Events, "Events (the Event about disabled copies)")...)
		}
	}
	return names
}

// knowsDesired reports whether all lists were read that the desired copies depend on.
func (f *facts) knowsDesired() bool {
	return f.isCopiable && f.in.OperatorGroups.Complete && f.in.Namespaces.Complete && (f.in.OLMConfigs.Complete || !f.targets.All())
}

// saysWhether reports whether an OLMConfig, which may be nil, sets disableCopiedCSVs. Only then an Event can exist.
func saysWhether(config *operatorsv1.OLMConfig) bool {
	return config != nil && config.Spec.Features != nil && config.Spec.Features.DisableCopiedCSVs != nil
}
