// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of this package's Diagnostics and Causes.
const (
	// ReasonOrphaned means that an object belongs to a ClusterServiceVersion or an OperatorGroup that does not exist
	// any more. Delete the object, or set Config.SweepDelete.
	ReasonOrphaned = "Orphaned"
	// ReasonNotObserved means that a list was not read, so no objects are checked. Give the caller access to the kind
	// in the message.
	ReasonNotObserved = read.ReasonNotObserved
)

const (
	// minAge is the minimum age of an orphan. The owner of a younger object may be missing from a stale cache.
	minAge = 10 * time.Minute
	// maxReported is the maximum number of orphans that one Result reports and deletes.
	maxReported = 100
)

// Reconcile finds cluster-scoped objects, and RoleBindings of kube-system, whose owner labels name a
// ClusterServiceVersion or OperatorGroup that does not exist. It also finds labels of such OperatorGroups on
// namespaces. It reports them as Diagnostics. If Config.SweepDelete is set, it also returns the writes that remove
// them.
//
// It ignores an object that has owner references, is younger than ten minutes, or is needed by another
// ClusterServiceVersion. It also ignores an object whose owner an InstallPlan is creating or created in the last ten
// minutes. Nothing was found if the Outcome contains only a Checkpoint or RequeueAfter. The error is an
// *olmcore.InputError.
func Reconcile(in Input) (olmcore.Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(&in), nil })
}

func decide(in *Input) olmcore.Result {
	lists := inputs.UnreadLists()
	in.lists(&lists)
	unread := slices.Concat(lists.Unread(), read.Missing(in.Objects, read.OwnedList(in.Unread)))
	if len(unread) > 0 {
		return read.NotRead(unread, olmcore.Ref{}, "", "no objects are checked")
	}
	orphans, wait := orphanedObjects(in)
	orphans = append(orphans, markedNamespaces(in)...)
	named := orphans[:min(len(orphans), maxReported)]
	res := olmcore.Result{Diagnostics: report(named, len(orphans)-len(named)), RequeueAfter: wait}
	if in.Config.SweepDelete {
		for _, o := range named {
			res.Actions = append(res.Actions, o.removal)
		}
	}
	return res
}

// report returns the Diagnostics about orphans, and about the number of those that are reported later.
func report(orphans []orphan, more int) []olmcore.Diagnostic {
	var diagnostics []olmcore.Diagnostic
	for _, o := range orphans {
		diagnostics = append(diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonOrphaned, o.ref, o.path, "%s", o.message))
	}
	if more > 0 {
		diagnostics = append(diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonOrphaned, olmcore.Ref{}, "",
			"%d more objects have no owner. They are reported once these are deleted", more))
	}
	return diagnostics
}

// orphan describes an object or label whose owner does not exist, and the write that removes it.
type orphan struct {
	ref           olmcore.Ref
	path, message string
	removal       olmcore.Action
}

func compareOrphans(a, b orphan) int { return a.ref.Compare(b.ref) }

// knownOwners returns the owners that exist, and those that InstallPlans in progress are about to create.
func knownOwners(in *Input) map[olmcore.Owner]bool {
	owners := map[olmcore.Owner]bool{}
	for _, c := range in.ClusterServiceVersions.Items {
		if !c.IsCopied() {
			owners[model.OwnerOf(c)] = true
		}
	}
	for _, g := range in.OperatorGroups.Items {
		owners[model.OwnerOfGroup(g)] = true
	}
	for _, p := range in.InstallPlans.Items {
		if !isFinished(p) {
			for _, owner := range installedBy(p) {
				owners[owner] = true
			}
		}
	}
	return owners
}

// recentOwners returns the owners that an InstallPlan created less than minAge ago, each with the time that is left
// until their absence counts. A cache may show that the plan finished before it shows what the plan created.
func recentOwners(in *Input) map[olmcore.Owner]time.Duration {
	recent := map[olmcore.Owner]time.Duration{}
	for _, p := range in.InstallPlans.Items {
		installed := p.Status.GetCondition(v1alpha1.InstallPlanInstalled)
		if !isFinished(p) || installed.LastTransitionTime.IsZero() {
			continue
		}
		left := minAge - model.Since(installed.LastTransitionTime, in.Now)
		for _, owner := range installedBy(p) {
			recent[owner] = max(recent[owner], left)
		}
	}
	return recent
}

func isFinished(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

// installedBy returns the ClusterServiceVersions of an InstallPlan as owners.
func installedBy(p *v1alpha1.InstallPlan) (owners []olmcore.Owner) {
	for _, name := range p.Spec.ClusterServiceVersionNames {
		owners = append(owners, olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: p.Namespace, Name: name})
	}
	return owners
}

// orphanedObjects returns the objects whose owner does not exist, and the time until the next one that is too young is
// old enough.
func orphanedObjects(in *Input) (orphans []orphan, wait time.Duration) {
	owners, recent := knownOwners(in), recentOwners(in)
	var waits []time.Duration
	var sharers *model.NextOwners
	for _, o := range in.Objects.Items {
		owner, ok := olmcore.OwnerOf(o.GetLabels())
		owner.UID = ""
		if !ok || owners[owner] || !isSwept(o, owner) {
			continue
		}
		if sharers == nil {
			sharers = model.IndexNextOwners(model.OwnerSources{
				ClusterServiceVersions: in.ClusterServiceVersions.Items, InstallPlans: in.InstallPlans.Items, OperatorGroups: in.OperatorGroups.Items,
			})
		}
		if sharers.NextOwnerOf(o) != nil {
			continue // another ClusterServiceVersion needs it
		}
		created := o.GetCreationTimestamp()
		if left := max(minAge-model.Since(&created, in.Now), recent[owner]); left > 0 {
			waits = append(waits, left)
			continue
		}
		message := fmt.Sprintf("its %s %s/%s does not exist", owner.Kind, owner.Namespace, owner.Name)
		cause := olmcore.Cause{Reason: ReasonOrphaned, Message: message}
		orphans = append(orphans, orphan{olmcore.RefOf(o), "", message, olmcore.DeleteOf(o, cause)})
	}
	slices.SortFunc(orphans, compareOrphans)
	return orphans, olmcore.Nearest(waits...)
}

// isSwept reports whether an object is an orphan if the owner that its labels name does not exist. CRDs and namespaces
// are never orphans. Neither are objects in namespaces other than kube-system, because tenants may write their labels.
func isSwept(o olmcore.Object, owner olmcore.Owner) bool {
	key := olmcore.KeyOf(o)
	return (owner.Kind == v1alpha1.ClusterServiceVersionKind || owner.Kind == operatorsv1.OperatorGroupKind) &&
		o.GetDeletionTimestamp() == nil && len(o.GetOwnerReferences()) == 0 &&
		key.Kind != "CustomResourceDefinition" && key.Kind != "Namespace" &&
		(key.Namespace == metav1.NamespaceAll || key.Namespace == metav1.NamespaceSystem)
}

// markedNamespaces returns the namespaces with labels of OperatorGroups that do not exist.
func markedNamespaces(in *Input) []orphan {
	groups := map[string]bool{}
	for _, g := range in.OperatorGroups.Items {
		groups[string(g.UID)] = true
	}
	isStray := func(key, _ string) bool {
		uid, marks := strings.CutPrefix(key, model.GroupLabelPrefix)
		return marks && !groups[uid]
	}
	const message = "it has the label of an OperatorGroup that does not exist"
	var marked []orphan
	for _, n := range in.Namespaces.Items {
		labels := maps.Clone(n.Labels)
		if maps.DeleteFunc(labels, isStray); n.DeletionTimestamp != nil || len(labels) == len(n.Labels) {
			continue
		}
		after := n.DeepCopy()
		after.Labels = labels
		update := olmcore.UpdateOf(n, after, olmcore.Cause{Reason: ReasonOrphaned, Message: message})
		marked = append(marked, orphan{olmcore.RefOf(n), "metadata.labels", message, update})
	}
	slices.SortFunc(marked, compareOrphans)
	return marked
}
