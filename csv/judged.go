// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// Judged is what the installation of a CSV was judged by: memory that the caller
// may keep from Outcome.Judged to the next Input. A CSV that failed for want of
// permissions is tried again as soon as any of it is different.
type Judged struct {
	// Generation is the CSV's.
	Generation int64
	// Account is the name of the ServiceAccount that the OperatorGroup prescribes,
	// empty when it prescribes none.
	Account string
	// Grants are those of the Input, sorted.
	Grants []olmcore.Ref
}

func (j *Judged) equal(o *Judged) bool {
	return j.Generation == o.Generation && j.Account == o.Account && slices.Equal(j.Grants, o.Grants)
}

// judgedBy is what the Input judges an installation by, nil when it was not read.
func judgedBy(in *Input) *Judged {
	if !in.Grants.Complete || !in.OperatorGroups.Complete {
		return nil
	}
	j := &Judged{Generation: in.ClusterServiceVersion.Generation, Grants: slices.Clone(in.Grants.Items)}
	slices.SortFunc(j.Grants, func(a, b olmcore.Ref) int {
		return cmp.Or(a.Compare(b), strings.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	j.Grants = slices.Compact(j.Grants)
	m := machine{in}
	if g, _ := m.group(); g != nil {
		j.Account = g.Spec.ServiceAccountName
	}
	return j
}

// remembered is what the caller is to hand back. What a write that failed was
// judged by is remembered from the call that asked for it on: what changed in
// between is a change.
func (m *machine) remembered(d *decision) *Judged {
	installs := m.phase() == v1alpha1.CSVPhaseInstallReady && d.phase == v1alpha1.CSVPhaseInstallReady
	froze := isFrozen(m.c()) && d.phase == v1alpha1.CSVPhaseFailed || d.reason == v1alpha1.CSVReasonComponentFailedNoRetry
	switch {
	case froze && m.in.Judged != nil:
		return m.in.Judged
	case installs || froze:
		return judgedBy(m.in)
	}
	return nil
}

// isFrozen reports whether a CSV failed for want of permissions.
func isFrozen(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && c.Status.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
}

// frozen holds a CSV that lacks permissions until something changed that may
// give them, or it is time for another try: not every grant can be observed.
func (m *machine) frozen() decision {
	thaw := func(message string) decision {
		return move("Thaw", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonDetectedClusterChange, message)
	}
	if now := judgedBy(m.in); m.in.Judged != nil && now != nil && !now.equal(m.in.Judged) {
		return thaw("Cluster resources changed state")
	}
	s := &m.c().Status
	left := frozenDelay(refusedInstalls(s)) - since(s.LastTransitionTime, m.in.Now)
	if left <= 0 || s.LastTransitionTime == nil {
		return thaw("trying again, as permissions may have been granted unnoticed")
	}
	return m.waitFor("G3", left)
}

// refusedInstalls counts the installations that were refused since the last
// success that the history shows.
func refusedInstalls(s *v1alpha1.ClusterServiceVersionStatus) int {
	return sinceSuccess(s, v1alpha1.CSVReasonComponentFailedNoRetry)
}

// frozenDelay is the pause after the n-th refused installation: a minute doubled
// each time, at most 10 min.
func frozenDelay(n int) time.Duration {
	return min(10*time.Minute, time.Minute<<min(4, max(0, n-1)))
}

// grants reads what the rights of the account that installs depend on, while an
// installation is being judged.
func (g *gatherer) grants() {
	c := g.in.ClusterServiceVersion
	if g.err != nil || c.Status.Phase != v1alpha1.CSVPhaseInstallReady && !isFrozen(c) {
		return
	}
	m := machine{&g.in}
	group, _ := m.group()
	bindings := list[*rbacv1.RoleBinding](g, c.Namespace, nil)
	global := list[*rbacv1.ClusterRoleBinding](g, "", nil)
	global.Items = slices.DeleteFunc(slices.Clone(global.Items), func(b *rbacv1.ClusterRoleBinding) bool { return !bindsInstaller(b, group) })
	var names []string
	for _, b := range bindings.Items {
		if b.RoleRef.Kind == "ClusterRole" {
			names = append(names, b.RoleRef.Name)
		}
	}
	for _, b := range global.Items {
		names = append(names, b.RoleRef.Name)
	}
	refs := olmcore.Observed[olmcore.Ref]{Complete: true}
	addRefs(&refs, bindings)
	addRefs(&refs, global)
	addRefs(&refs, list[*rbacv1.Role](g, c.Namespace, nil))
	addRefs(&refs, list[*corev1.ServiceAccount](g, c.Namespace, nil))
	addRefs(&refs, named[*rbacv1.ClusterRole](g, "", names))
	g.in.Grants = refs
}

func bindsInstaller(b *rbacv1.ClusterRoleBinding, g *operatorsv1.OperatorGroup) bool {
	return g != nil && g.Spec.ServiceAccountName != "" && account{g.Namespace, g.Spec.ServiceAccountName}.isBound(b.Subjects, "")
}

func addRefs[T olmcore.Object](refs *olmcore.Observed[olmcore.Ref], list olmcore.Observed[T]) {
	refs.Complete = refs.Complete && list.Complete
	for _, o := range list.Items {
		refs.Items = append(refs.Items, olmcore.RefOf(o))
	}
}
