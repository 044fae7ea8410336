// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

const (
	// sweepAge is how old an object must be before Sweep calls it an orphan: its
	// owner may be on its way into a cache.
	sweepAge = 10 * time.Minute
	// sweepSaid bounds what one result says and deletes.
	sweepSaid = 100
)

// SweepInput is everything Sweep looks at. Sweep writes to none of it. A list that
// was not read makes Sweep say so and do nothing.
type SweepInput struct {
	// Now is the instant of this call. Required.
	Now    time.Time
	Config Config
	// ClusterServiceVersions, OperatorGroups and InstallPlans are those of all
	// namespaces.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	OperatorGroups         olmcore.Observed[*operatorsv1.OperatorGroup]
	InstallPlans           olmcore.Observed[*v1alpha1.InstallPlan]
	// Namespaces are those of the cluster.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// Objects are the cluster-scoped objects, and the RoleBindings of kube-system,
	// that carry the label olm.owner.kind.
	Objects olmcore.Observed[olmcore.Object]
	// Unread are the kinds for which Objects is not complete, which what is said names;
	// may be empty.
	Unread []schema.GroupKind
}

// Sweep finds what CSVs and OperatorGroups left behind that went while nobody
// watched, or whose finalizer was removed by hand: cluster-scoped objects whose
// owner labels name an owner that does not exist, and labels on namespaces of
// groups that do not exist. It reports them as Diagnostics and, with
// Config.Cleanup.SweepDelete, removes them. An object younger than ten minutes,
// and one whose owner an unfinished InstallPlan is about to create, is left alone.
func Sweep(in SweepInput) (olmcore.Result, error) {
	if err := in.validate(); err != nil {
		return olmcore.Result{}, err
	}
	s := sweeper{in: &in}
	for _, list := range [...]struct {
		name     string
		complete bool
	}{
		{"ClusterServiceVersions", in.ClusterServiceVersions.Complete}, {"OperatorGroups", in.OperatorGroups.Complete},
		{"InstallPlans", in.InstallPlans.Complete}, {"Namespaces", in.Namespaces.Complete}, {ownedObjects(in.Unread), in.Objects.Complete},
	} {
		if !list.complete {
			s.res.Diagnostics = []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: ReasonNotObserved, Message: "the list of " + list.name + " was not read, so nothing is swept",
			}}
			s.res.RequeueAfter = 5 * time.Second
			return s.res, nil
		}
	}
	s.index()
	s.objects()
	s.labels()
	return s.res, nil
}

func (in *SweepInput) validate() error {
	if in.Now.IsZero() {
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return cmp.Or(in.Config.validate(),
		sound("ClusterServiceVersions", in.ClusterServiceVersions.Items), sound("OperatorGroups", in.OperatorGroups.Items),
		sound("InstallPlans", in.InstallPlans.Items), sound("Namespaces", in.Namespaces.Items), noNilObject("Objects", in.Objects.Items))
}

type sweeper struct {
	in     *SweepInput
	owners map[olmcore.Owner]bool // those that exist, and those that are to come
	groups map[string]bool        // by UID
	found  int
	res    olmcore.Result
}

func (s *sweeper) index() {
	s.owners, s.groups = map[olmcore.Owner]bool{}, map[string]bool{}
	for _, c := range s.in.ClusterServiceVersions.Items {
		if !isCopied(c) {
			s.owners[ownerOf(c)] = true
		}
	}
	for _, g := range s.in.OperatorGroups.Items {
		s.owners[groupOwner(g)] = true
		s.groups[string(g.UID)] = true
	}
	for _, p := range s.in.InstallPlans.Items {
		if p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
			continue
		}
		for _, name := range p.Spec.ClusterServiceVersionNames {
			s.owners[olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: p.Namespace, Name: name}] = true
		}
	}
}

func (s *sweeper) objects() {
	var orphans []olmcore.Object
	for _, o := range s.in.Objects.Items {
		if s.isOrphan(o) {
			orphans = append(orphans, o)
		}
	}
	sortObjects(orphans)
	for _, o := range orphans {
		created := o.GetCreationTimestamp()
		if left := sweepAge - since(&created, s.in.Now); left > 0 {
			s.res.Requeue(left)
			continue
		}
		owner, _ := olmcore.OwnerOf(o.GetLabels())
		message := fmt.Sprintf("its %s %s/%s does not exist", owner.Kind, owner.Namespace, owner.Name)
		s.report(o, "", message, olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonOrphaned, Message: message}))
	}
}

// isOrphan reports whether an object outside the namespaces, whatever its age,
// names an owner that does not exist.
func (s *sweeper) isOrphan(o olmcore.Object) bool {
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	owner.UID = ""
	if !ok || owner.Kind != v1alpha1.ClusterServiceVersionKind && owner.Kind != operatorsv1.OperatorGroupKind || s.owners[owner] ||
		o.GetDeletionTimestamp() != nil || len(o.GetOwnerReferences()) > 0 {
		return false
	}
	key := olmcore.KeyOf(o)
	return key.Kind != "CustomResourceDefinition" && key.Kind != "Namespace" && (key.Namespace == "" || key.Namespace == kubeSystem)
}

// labels looks for marks of OperatorGroups on namespaces.
func (s *sweeper) labels() {
	var marked []*corev1.Namespace
	for _, n := range s.in.Namespaces.Items {
		if n.DeletionTimestamp == nil && s.isMarked(n) {
			marked = append(marked, n)
		}
	}
	slices.SortFunc(marked, func(a, b *corev1.Namespace) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range marked {
		after := n.DeepCopy()
		maps.DeleteFunc(after.Labels, func(key, _ string) bool { return s.isStrayMark(key) })
		const message = "it carries the label of an OperatorGroup that does not exist"
		s.report(n, "metadata.labels", message, olmcore.UpdateOf(n, after, olmcore.Cause{Reason: ReasonOrphaned, Message: message}))
	}
}

func (s *sweeper) isMarked(n *corev1.Namespace) bool {
	for key := range n.Labels {
		if s.isStrayMark(key) {
			return true
		}
	}
	return false
}

func (s *sweeper) isStrayMark(key string) bool {
	uid, ok := strings.CutPrefix(key, groupUIDPrefix)
	return ok && !s.groups[uid]
}

func (s *sweeper) report(o olmcore.Object, path, message string, a olmcore.Action) {
	switch s.found++; {
	case s.found > sweepSaid+1:
		return
	case s.found == sweepSaid+1:
		s.res.Diagnostics = append(s.res.Diagnostics, olmcore.Diagnostic{
			Severity: olmcore.Warning, Reason: ReasonOrphaned, Message: fmt.Sprintf("there are more than %d; the rest comes with the next sweep", sweepSaid),
		})
		return
	}
	s.res.Diagnostics = append(s.res.Diagnostics, olmcore.Diagnostic{
		Severity: olmcore.Warning, Reason: ReasonOrphaned, Message: message, Target: olmcore.RefOf(o).Unversioned(), Path: path,
	})
	if s.in.Config.Cleanup.SweepDelete {
		s.res.Actions = append(s.res.Actions, a)
	}
}
