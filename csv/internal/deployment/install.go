// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions of this package.
const (
	ReasonInstall             = "Install"
	ReasonRemovedFromStrategy = "RemovedFromStrategy"
)

// Bad is OLM's message if the desired Deployments cannot be computed.
const Bad = "calculated deployment install is bad"

// retry is the backoff after a write that ended with a conflict or a transient error.
var retry = olmcore.Backoff{Base: time.Second, Max: time.Minute}

// Installation contains the remaining work until the Deployments of a CSV are installed. The zero value means that
// nothing is left to do.
type Installation struct {
	Actions      []olmcore.Action
	Failure      string        // Failure is the error message of a failed write, or empty.
	FailedAt     time.Time     // FailedAt is the time of Failure, or zero if the API server did not report it.
	NoRetry      bool          // NoRetry is true if a retry of the failed write cannot succeed.
	RequeueAfter time.Duration // RequeueAfter is the time until the next call, or 0 if none is needed.
	Incomputable bool          // Incomputable is true if a desired Deployment cannot be computed.
	// Attempts contains the writes of this call and the results of their last attempts. Pass it in Tries.Attempts of the
	// next call.
	Attempts Attempts
}

// Done reports whether nothing is left to do.
func (i Installation) Done() bool {
	return len(i.Actions) == 0 && i.Failure == "" && i.RequeueAfter == 0 && !i.Incomputable
}

// Install returns the writes that make the live Deployments match the strategy. A write of an earlier call has
// succeeded if its effect is observed. Otherwise the result of its last attempt determines whether it is retried.
func (s Source) Install(tries Tries) Installation {
	todo := Installation{Attempts: Attempts{}}
	live := model.IndexByName(s.Deployments, s.CSV.Namespace)
	specs := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		want, err := s.desired(&specs[i], asMeant)
		if err != nil {
			return Installation{Incomputable: true}
		}
		have := live[want.Name]
		if have != nil && s.isInstalled(&specs[i], have, want) {
			continue
		}
		var write olmcore.Action
		switch {
		case have == nil:
			write = s.create(want, s.Account)
		case have.DeletionTimestamp == nil:
			write = update(have, want, s.Account)
		default: // a new Deployment is created once this one is deleted
			todo.RequeueAfter = model.NextCheck(model.Since(have.DeletionTimestamp, tries.Now), time.Minute)
			continue
		}
		if failed := todo.afterLastTry(write, tries); failed {
			return todo
		}
		todo.Actions = append(todo.Actions, write)
	}
	return todo
}

// Judge returns an Installation with the given writes, or with the failure of a write whose retry is not due. The
// writes may be of any kind. As in Install, the result of the last attempt of a write determines whether it is retried.
// Judge never sets NoRetry.
func Judge(actions []olmcore.Action, tries Tries) Installation {
	todo := Installation{Attempts: Attempts{}}
	for _, a := range actions {
		if failed := todo.afterLastTry(a, tries); failed {
			todo.NoRetry = false
			return todo
		}
	}
	todo.Actions = actions
	return todo
}

// afterLastTry applies the result of the last attempt of a write to the Installation. It reports whether the write
// failed and is not repeated now. Then nothing is written, and RequeueAfter is the time until the next attempt, or 0 if
// there is none.
func (i *Installation) afterLastTry(write olmcore.Action, tries Tries) (failed bool) {
	_, target, _ := write.Describe()
	a := tries.of(write)
	i.Attempts[target.Key()] = a
	switch a.result.Class {
	case olmcore.ClassNone, olmcore.Gone:
		return false
	case olmcore.Conflict, olmcore.Transient:
		i.RequeueAfter = retry.After(a.count)
		return false
	}
	failure, isForbidden := a.result.Message, a.result.Class == olmcore.Forbidden
	left, permanent := tries.left(a)
	switch {
	case permanent:
		left = 0
	case tries.Again && left <= 0:
		return false
	}
	*i = Installation{Failure: failure, FailedAt: a.result.Last, NoRetry: isForbidden, RequeueAfter: left, Attempts: i.Attempts}
	return true
}

// Held returns the failure of an earlier attempt whose retry is not due yet. It returns the zero value if there is no
// such failure. Held needs no writes, so it can be called before they are computed.
func (t Tries) Held() Installation {
	if !t.Again {
		return Installation{}
	}
	for _, key := range slices.SortedFunc(maps.Keys(t.Attempts), olmcore.Key.Compare) {
		a := t.Attempts[key]
		switch a.result.Class {
		case olmcore.ClassNone, olmcore.Gone, olmcore.Conflict, olmcore.Transient:
			continue
		}
		if left, permanent := t.left(a); permanent {
			return Installation{Failure: a.result.Message, FailedAt: a.result.Last, Attempts: t.Attempts}
		} else if left > 0 {
			return Installation{Failure: a.result.Message, FailedAt: a.result.Last, RequeueAfter: left, Attempts: t.Attempts}
		}
	}
	return Installation{}
}

// isInstalled reports whether a live Deployment is the desired one. It compares the owner, the labels, the hash and the
// annotations.
func (s Source) isInstalled(entry *v1alpha1.StrategyDeploymentSpec, live, want *appsv1.Deployment) bool {
	_, changed := olmcore.MergeMaps(live.Spec.Template.Annotations, want.Spec.Template.Annotations)
	if live.DeletionTimestamp != nil || !ownedAlone(live, s.CSV) || changed {
		return false
	}
	labels := maps.Clone(want.Labels)
	if s.isCurrent(entry, want, live.Labels[labelSpecHash]) {
		delete(labels, labelSpecHash)
	}
	_, changed = olmcore.MergeMaps(live.Labels, labels)
	return !changed
}

// ownedAlone reports whether a CSV owns a Deployment and no other CSV does.
func ownedAlone(d *appsv1.Deployment, c *model.CSV) bool {
	want, found := olmcore.OwnerReferenceTo(c), false
	for _, r := range d.OwnerReferences {
		if olmcore.SameOwnerReference(r, want) {
			found = true
		} else if model.IsCSVReference(r) {
			return false
		}
	}
	return found
}

func (s Source) create(want *appsv1.Deployment, as *corev1.ObjectReference) olmcore.Action {
	LabelComponents(want, s.CSV)
	return olmcore.Create{
		Target: olmcore.RefOf(want), Object: want, As: as,
		Cause: olmcore.Cause{Reason: ReasonInstall, Message: "deployment " + want.Name + " does not exist"},
	}
}

// LabelComponents copies the component labels of a CSV to an object that is created for the CSV. The keys of these
// labels start with olmcore.ComponentLabelPrefix.
func LabelComponents(o olmcore.Object, c *model.CSV) {
	components := map[string]string{}
	for key, value := range c.Labels {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
			components[key] = value
		}
	}
	if labels, changed := olmcore.MergeMaps(o.GetLabels(), components); changed {
		o.SetLabels(labels)
	}
}

// update returns the write that replaces the spec and the owner of a Deployment. It keeps labels and annotations of
// other writers.
func update(live, want *appsv1.Deployment, as *corev1.ObjectReference) olmcore.Action {
	after := live.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(after.Labels, want.Labels)
	after.Annotations, _ = olmcore.MergeMaps(after.Annotations, want.Annotations)
	after.OwnerReferences = want.OwnerReferences
	after.Spec = want.Spec
	u := olmcore.UpdateOf(live, after, olmcore.Cause{
		Reason: ReasonInstall, Message: "deployment " + want.Name + " does not match this version",
	})
	u.As = as
	return u
}

// Removals returns the deletions of the CSV's Deployments that its strategy no longer contains. A Deployment belongs to
// the CSV if its labels and an owner reference name the CSV.
func Removals(c *model.CSV, deployments []*appsv1.Deployment) []olmcore.Action {
	declared := model.DeploymentNames(c)
	isRemoved := func(d *appsv1.Deployment) bool { return !declared.Has(d.Name) }
	return deleteEach(c, deployments, isRemoved, func(d *appsv1.Deployment) olmcore.Cause {
		return olmcore.Cause{Reason: ReasonRemovedFromStrategy, Message: "the install strategy no longer contains deployment " + d.Name}
	})
}

// Stop returns the deletions of the Deployments that only this CSV owns.
func Stop(c *model.CSV, deployments []*appsv1.Deployment, why olmcore.Cause) []olmcore.Action {
	isDeleted := func(d *appsv1.Deployment) bool { return ownedAlone(d, c) }
	return deleteEach(c, deployments, isDeleted, func(*appsv1.Deployment) olmcore.Cause { return why })
}

func deleteEach(
	c *model.CSV, deployments []*appsv1.Deployment, goes func(*appsv1.Deployment) bool, why func(*appsv1.Deployment) olmcore.Cause,
) []olmcore.Action {
	var actions []olmcore.Action
	for _, d := range deployments {
		if d.DeletionTimestamp == nil && model.OwnsDeployment(c, d) && goes(d) {
			actions = append(actions, Delete(d, why(d)))
		}
	}
	slices.SortFunc(actions, ByTarget)
	return actions
}

// Delete returns the action that deletes a Deployment in the foreground, so that it exists until its Pods are deleted.
func Delete(d *appsv1.Deployment, why olmcore.Cause) olmcore.Delete {
	a := olmcore.DeleteOf(d, why)
	a.PropagationPolicy = metav1.DeletePropagationForeground
	a.GracePeriodSeconds = new(int64(1))
	return a
}

// ByTarget compares two actions by the objects that they write. It is used to sort actions.
func ByTarget(a, b olmcore.Action) int {
	_, x, _ := a.Describe()
	_, y, _ := b.Describe()
	return x.Compare(y)
}

// Conflict returns a message about a Deployment of the strategy that belongs to another owner, or an empty string if
// there is none. A Deployment of a CSV that does not exist any more may be taken over. If adopt is true, a Deployment
// without an owner may be taken over too.
func Conflict(c *model.CSV, relatives sets.Set[*model.CSV], neighbours []*model.CSV, deployments []*appsv1.Deployment, adopt bool) string {
	live := model.IndexByName(deployments, c.Namespace)
	specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		d := live[specs[i].Name]
		if d == nil {
			continue
		}
		_, labelled := olmcore.OwnerOf(d.Labels)
		if !labelled && !slices.ContainsFunc(d.OwnerReferences, model.IsCSVReference) {
			if !adopt {
				return fmt.Sprintf("deployment %s exists and is not managed by an operator", d.Name)
			}
			continue
		}
		for _, other := range neighbours {
			if model.IsNeighbour(c, other) && model.OwnerOf(other).Owns(d.Labels) && !relatives.Has(other) {
				return fmt.Sprintf("deployment %s is owned by ClusterServiceVersion %s", d.Name, other.Name)
			}
		}
	}
	return ""
}

// Attempt contains one write of an installation and the result of its last attempt.
type Attempt struct {
	// content is the object or patch that was sent, and the account that sent it.
	content string
	// result is zero if the write was not attempted yet.
	result olmcore.LastResult
	// count is the number of consecutive attempts that ended with the class of result.
	count int
}

// Attempts contains the last attempt of each write of an installation. The keys of the map are the keys of the written
// objects.
type Attempts map[olmcore.Key]Attempt

// Equal reports whether a and b contain the same attempts.
func (a Attempts) Equal(b Attempts) bool { return maps.Equal(a, b) }

// Tries contains the results of earlier attempts to install a ClusterServiceVersion.
type Tries struct {
	Now time.Time
	// Attempts is Installation.Attempts of the last call. LastRun contains the results of the caller's last olmcore.Run.
	Attempts Attempts
	LastRun  olmcore.LastResults
	// Since is the start of this installation. Results from before Since are ignored. If Since is zero, no result is
	// ignored.
	Since time.Time
	// Again is true if the installation failed before. Failed writes are then retried with backoff. A write that the API
	// server rejected as invalid is not retried until its content changes.
	Again bool
}

// installRetry is the backoff after a failed write of an installation.
var installRetry = olmcore.Backoff{Base: 5 * time.Second, Max: 10 * time.Minute}

// RefusedRetry is the backoff after a write that was rejected for missing permissions.
var RefusedRetry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// of returns the attempts of a write. The result is zero if the write was not attempted with this content.
func (t Tries) of(a olmcore.Action) Attempt {
	_, target, _ := a.Describe()
	now := Attempt{content: contentOf(a)}
	was, asked := t.Attempts[target.Key()]
	if asked && was.content != now.content {
		return now
	}
	last, ran := t.LastRun[target.Key()]
	switch {
	case !ran || last.Last.Before(t.Since):
		now.result, now.count = was.result, was.count
	case last.Last.Equal(was.result.Last):
		now.result, now.count = last, was.count
	case last.Class == was.result.Class:
		now.result, now.count = last, was.count+1
	default:
		now.result, now.count = last, last.Count
	}
	return now
}

// left returns the time until the next attempt of a failed write. permanent is true if the write is not repeated until
// its content changes.
func (t Tries) left(a Attempt) (left time.Duration, permanent bool) {
	backoff := installRetry
	if a.result.Class == olmcore.Forbidden {
		backoff = RefusedRetry
	}
	return backoff.After(a.count) - max(0, t.Now.Sub(a.result.Last)), a.result.Class == olmcore.Invalid
}

func withoutData(o olmcore.Object) olmcore.Object {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return o
	}
	bare := *secret
	bare.Data, bare.StringData = nil, nil
	return &bare
}

// contentOf returns the content that a write sends, without the resourceVersion of the object. For a Secret, it
// contains only the metadata. Each attempt sends a new certificate, and private keys are not stored.
func contentOf(a olmcore.Action) string {
	switch write := a.(type) {
	case olmcore.Create:
		write.Object = withoutData(write.Object)
		a = write
	case olmcore.Update:
		write.Before, write.After = withoutData(write.Before), withoutData(write.After)
		a = write
	}
	r, err := olmcore.RecordOf(a)
	if err != nil {
		return ""
	}
	r.Target.ResourceVersion = ""
	r.Cause = olmcore.Cause{}
	data, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return string(data)
}
