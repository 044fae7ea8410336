// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// installation is what an InstallReady CSV still has to do.
type installation struct {
	// actions bring the Deployments about; none when all are as they should be.
	actions []olmcore.Action
	// failure says why the last try failed; noRetry that trying again is no use.
	failure string
	noRetry bool
	// requeue is when to look again without an event.
	requeue time.Duration
	// bad says that the Deployments cannot be computed.
	bad bool
}

// install compares the Deployments of the strategy with the live ones. A write
// is judged by its effect, and by the outcome of the last try where there is one.
func install(in *Input) installation {
	var todo installation
	as := installIdentity(in)
	specs := in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	deployments := finderOf(in.Deployments.Items)
	for i := range specs {
		want, err := desiredDeployment(in, i)
		if err != nil {
			return installation{bad: true}
		}
		at := deployments.find(want.Namespace, want.Name)
		if at >= 0 && isInstalled(in, i, in.Deployments.Items[at], want) {
			continue
		}
		if failed, stop := todo.judge(in, want); stop {
			return failed
		}
		switch {
		case at < 0:
			labelComponents(want, in.ClusterServiceVersion)
			todo.actions = append(todo.actions, olmcore.Create{
				Target: olmcore.RefOf(want), Object: want, As: as,
				Cause: olmcore.Cause{Reason: ReasonInstall, Message: "deployment " + want.Name + " does not exist"},
			})
		case in.Deployments.Items[at].DeletionTimestamp == nil:
			todo.actions = append(todo.actions, updateDeployment(in.Deployments.Items[at], want, as))
		default:
			todo.requeue = wait(since(in.Deployments.Items[at].DeletionTimestamp, in.Now), time.Minute) // on its way out, its successor comes then
		}
	}
	return todo
}

// judge reads the outcome of the last try to write a Deployment. An outcome from
// before the CSV became InstallReady is another try's.
func (todo *installation) judge(in *Input, want *appsv1.Deployment) (failed installation, stop bool) {
	last, tried := in.LastRun[olmcore.KeyOf(want)]
	if entered := in.ClusterServiceVersion.Status.LastTransitionTime; !tried || entered != nil && last.Last.Before(entered.Time) {
		return failed, false
	}
	switch last.Class {
	case olmcore.ClassNone, olmcore.Gone:
	case olmcore.Conflict, olmcore.Transient:
		todo.requeue = min(time.Minute, time.Second<<min(6, max(0, last.Count-1)))
	default:
		return installation{failure: last.Message, noRetry: last.Class == olmcore.Forbidden}, true
	}
	return failed, false
}

// isInstalled compares what marks a Deployment as the wanted one. The live spec
// is full of the API server's defaults, so its hash label speaks for it.
func isInstalled(in *Input, i int, live, want *appsv1.Deployment) bool {
	if live.DeletionTimestamp != nil || !isOwnedAlone(live.OwnerReferences, want.OwnerReferences[0]) {
		return false
	}
	for key, value := range want.Labels {
		if key == labelSpecHash && (hasForeignCertificates(in, live) || isCurrentHash(in, i, want, live.Labels[key])) {
			continue
		}
		if have, ok := live.Labels[key]; !ok || have != value {
			return false
		}
	}
	same, _ := compareAnnotations(in, live.Spec.Template.Annotations)
	return same && !drifted(in, live, want)
}

// isOwnedAlone reports whether this CSV and no other is among the owners.
func isOwnedAlone(have []metav1.OwnerReference, want metav1.OwnerReference) bool {
	owned := false
	for i := range have {
		switch {
		case olmcore.SameOwnerReference(have[i], want):
			owned = true
		case isCSVReference(&have[i]):
			return false
		}
	}
	return owned
}

// updateDeployment replaces the spec and the owner, and keeps what others wrote
// into labels and annotations.
func updateDeployment(live, want *appsv1.Deployment, as *corev1.ObjectReference) olmcore.Action {
	after := live.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, want.Labels)
	for key, value := range want.Annotations {
		setAnnotation(&after.ObjectMeta, key, value)
	}
	after.OwnerReferences = want.OwnerReferences
	after.Spec = want.Spec
	u := olmcore.UpdateOf(live, after, olmcore.Cause{Reason: ReasonInstall, Message: "deployment " + want.Name + " is not that of this version"})
	u.As = as
	return u
}

// installIdentity is the ServiceAccount that the OperatorGroup prescribes, nil
// when it prescribes none or its status does not confirm it.
func installIdentity(in *Input) *corev1.ObjectReference {
	m := machine{in}
	g, _ := m.group()
	account, _ := olmcore.AccountOf(g) // unconfirmed: nothing is installed
	return account
}

// removals deletes the Deployments that are the CSV's, by label and by owner,
// and that its strategy has no more.
func removals(in *Input) []olmcore.Action {
	var actions []olmcore.Action
	c := in.ClusterServiceVersion
	declared := func(name string) bool { return declaresDeployment(c, name) }
	if specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs; len(specs) > few {
		names := make(map[string]bool, len(specs))
		for i := range specs {
			names[specs[i].Name] = true
		}
		declared = func(name string) bool { return names[name] }
	}
	for _, d := range in.Deployments.Items {
		if d.DeletionTimestamp != nil || declared(d.Name) || !isOwnDeployment(c, d) {
			continue
		}
		actions = append(actions, deleteDeployment(d, olmcore.Cause{
			Reason: ReasonRemovedFromStrategy, Message: "the install strategy has no deployment " + d.Name + " any more",
		}))
	}
	slices.SortFunc(actions, byTarget)
	return actions
}

// isOwnDeployment asks for the labels and the owner reference: a Deployment that
// another CSV took over has neither.
func isOwnDeployment(c *version, d *appsv1.Deployment) bool {
	return d.Namespace == c.Namespace && ownerOf(c).Owns(d.Labels) && olmcore.OwnedBy(d, c.UID)
}

func deleteDeployment(d *appsv1.Deployment, why olmcore.Cause) olmcore.Action {
	a := olmcore.DeleteOf(d, why)
	a.PropagationPolicy = metav1.DeletePropagationForeground
	a.GracePeriodSeconds = new(int64(1))
	return a
}

func byTarget(a, b olmcore.Action) int {
	_, x, _ := a.Describe()
	_, y, _ := b.Describe()
	return x.Compare(y)
}

// conflict says why the CSV must not install although its requirements are met:
// somebody else has what it would take. Empty when nothing stands in the way.
func conflict(in *Input) (v1alpha1.ConditionReason, string) {
	if problem := webhookError(in.ClusterServiceVersion); problem != "" {
		return v1alpha1.CSVReasonInvalidWebhookDescription, problem
	}
	line := chainOf(in)
	var family map[*version]bool
	for i := range in.Neighbours.Items {
		other := line.at(i + 1)
		if other == nil || !ownsSameCRD(in.ClusterServiceVersion, other) {
			continue
		}
		if family == nil {
			family = line.family()
		}
		if !family[other] {
			return v1alpha1.CSVReasonOwnerConflict, "conflicting CRD owner in namespace"
		}
	}
	specs := in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	deployments := finderOf(in.Deployments.Items)
	for i := range specs {
		if at := deployments.find(in.ClusterServiceVersion.Namespace, specs[i].Name); at >= 0 {
			if problem := deploymentConflict(in, in.Deployments.Items[at]); problem != "" {
				return v1alpha1.CSVReasonOwnerConflict, problem
			}
		}
	}
	return "", ""
}

func ownsSameCRD(a, b *version) bool {
	for i := range a.Spec.CustomResourceDefinitions.Owned {
		if describes(b.Spec.CustomResourceDefinitions.Owned, a.Spec.CustomResourceDefinitions.Owned[i].Name) {
			return true
		}
	}
	return false
}

// deploymentConflict judges a live Deployment whose name the strategy wants. One
// of a CSV that does not exist any more may be taken over.
func deploymentConflict(in *Input, d *appsv1.Deployment) string {
	_, labelled := olmcore.OwnerOf(d.Labels)
	byCSV := slices.ContainsFunc(d.OwnerReferences, func(r metav1.OwnerReference) bool { return isCSVReference(&r) })
	if !labelled && !byCSV {
		if in.Config.AdoptForeignDeployments {
			return ""
		}
		return fmt.Sprintf("deployment %s exists and is not managed by an operator", d.Name)
	}
	line := chainOf(in)
	for i := range in.Neighbours.Items {
		if other := line.at(i + 1); other != nil && ownerOf(other).Owns(d.Labels) && !line.family()[other] {
			return fmt.Sprintf("deployment %s is owned by ClusterServiceVersion %s", d.Name, other.Name)
		}
	}
	return ""
}
