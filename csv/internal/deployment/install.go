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

	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions of this package.
const (
	ReasonInstall             = "Install"
	ReasonRemovedFromStrategy = "RemovedFromStrategy"
)

// Bad is what OLM says about Deployments that cannot be computed.
const Bad = "calculated deployment install is bad"

// retry is the wait after a write that met a conflict or an error that passes.
var retry = olmcore.Backoff{Base: time.Second, Max: time.Minute}

// Installation is what is left to do until the Deployments of a CSV are installed; the zero value when nothing is.
type Installation struct {
	Actions      []olmcore.Action
	Failure      string        // why the last try failed
	FailedAt     time.Time     // when it failed, zero if the failure is no answer of the API server
	NoRetry      bool          // trying again is no use
	RequeueAfter time.Duration // when to look again without an event
	Incomputable bool          // what should exist cannot be computed
	// Attempts are the writes that were looked at, for the next call.
	Attempts Attempts
}

// Done reports whether nothing is left to do.
func (i Installation) Done() bool {
	return len(i.Actions) == 0 && i.Failure == "" && i.RequeueAfter == 0 && !i.Incomputable
}

// Install compares the Deployments of the strategy with the live ones and writes as the account. A write is judged by
// its effect, and by the outcome of the last try where there is one.
func (s Source) Install(tries Tries) Installation {
	todo := Installation{Attempts: Attempts{}}
	live := owned.ByName(s.Deployments, s.CSV.Namespace)
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
		default: // the next one is created once it is gone
			todo.RequeueAfter = owned.Wait(owned.Since(have.DeletionTimestamp, tries.Now), time.Minute)
			continue
		}
		if failed := todo.afterLastTry(write, tries); failed {
			return todo
		}
		todo.Actions = append(todo.Actions, write)
	}
	return todo
}

// Judge is Install for other objects, which are written as the actions say. Only the want of permissions for
// Deployments makes another try of no use.
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

// afterLastTry takes in the outcome of the last try of a write. It reports whether the write failed and is not repeated
// now: then nothing is written, and RequeueAfter is the time to the next try, 0 for none.
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

// Held returns the failure of an earlier try that is not repeated now, before its write is known again; the zero value
// for none.
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

// isInstalled reports whether a Deployment is the desired one: by its owner, its labels and the hash and annotations.
func (s Source) isInstalled(entry *v1alpha1.StrategyDeploymentSpec, live, want *appsv1.Deployment) bool {
	_, changed := olmcore.MergeLabels(live.Spec.Template.Annotations, want.Spec.Template.Annotations)
	if live.DeletionTimestamp != nil || !ownedAlone(live, s.CSV) || changed {
		return false
	}
	labels := maps.Clone(want.Labels)
	if s.isCurrent(entry, want, live.Labels[labelSpecHash]) {
		delete(labels, labelSpecHash)
	}
	_, changed = olmcore.MergeLabels(live.Labels, labels)
	return !changed
}

// ownedAlone reports whether a CSV and no other is among the owners of a Deployment.
func ownedAlone(d *appsv1.Deployment, c *owned.CSV) bool {
	want, found := olmcore.OwnerReferenceTo(c), false
	for _, r := range d.OwnerReferences {
		if olmcore.SameOwnerReference(r, want) {
			found = true
		} else if owned.IsReference(r) {
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

// LabelComponents puts the component labels of a CSV on an object that is made for it.
func LabelComponents(o olmcore.Object, c *owned.CSV) {
	components := map[string]string{}
	for key, value := range c.Labels {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
			components[key] = value
		}
	}
	if labels, changed := olmcore.MergeLabels(o.GetLabels(), components); changed {
		o.SetLabels(labels)
	}
}

// update replaces the spec and the owner, and keeps what others wrote into labels and annotations.
func update(live, want *appsv1.Deployment, as *corev1.ObjectReference) olmcore.Action {
	after := live.DeepCopy()
	after.Labels, _ = olmcore.MergeLabels(after.Labels, want.Labels)
	after.Annotations, _ = olmcore.MergeLabels(after.Annotations, want.Annotations)
	after.OwnerReferences = want.OwnerReferences
	after.Spec = want.Spec
	u := olmcore.UpdateOf(live, after, olmcore.Cause{Reason: ReasonInstall, Message: "deployment " + want.Name + " is not that of this version"})
	u.As = as
	return u
}

// Removals delete the Deployments that are the CSV's, by label and by owner, and that its strategy has no more.
func Removals(c *owned.CSV, deployments []*appsv1.Deployment) []olmcore.Action {
	declared := owned.Deployments(c)
	return deleteEach(c, deployments, func(d *appsv1.Deployment) bool { return !declared.Has(d.Name) }, func(d *appsv1.Deployment) olmcore.Cause {
		return olmcore.Cause{Reason: ReasonRemovedFromStrategy, Message: "the install strategy has no deployment " + d.Name + " any more"}
	})
}

// Stop deletes the Deployments of a CSV. One that another version shares is that one's.
func Stop(c *owned.CSV, deployments []*appsv1.Deployment, why olmcore.Cause) []olmcore.Action {
	return deleteEach(c, deployments, func(d *appsv1.Deployment) bool { return ownedAlone(d, c) }, func(*appsv1.Deployment) olmcore.Cause { return why })
}

func deleteEach(c *owned.CSV, deployments []*appsv1.Deployment, goes func(*appsv1.Deployment) bool, why func(*appsv1.Deployment) olmcore.Cause) []olmcore.Action {
	var actions []olmcore.Action
	for _, d := range deployments {
		if d.DeletionTimestamp == nil && owned.Deployment(c, d) && goes(d) {
			actions = append(actions, Delete(d, why(d)))
		}
	}
	slices.SortFunc(actions, ByTarget)
	return actions
}

// Delete returns the action that deletes a Deployment and waits for its Pods.
func Delete(d *appsv1.Deployment, why olmcore.Cause) olmcore.Delete {
	a := olmcore.DeleteOf(d, why)
	a.PropagationPolicy = metav1.DeletePropagationForeground
	a.GracePeriodSeconds = new(int64(1))
	return a
}

// ByTarget orders actions by the object that they write.
func ByTarget(a, b olmcore.Action) int {
	_, x, _ := a.Describe()
	_, y, _ := b.Describe()
	return x.Compare(y)
}

// Conflict says which Deployment that the strategy of a CSV declares is another's; empty when none is. One of a CSV
// that does not exist any more may be taken over, and with adopt also one that has no owner.
func Conflict(c *owned.CSV, relatives sets.Set[*owned.CSV], neighbours []*owned.CSV, deployments []*appsv1.Deployment, adopt bool) string {
	live := owned.ByName(deployments, c.Namespace)
	specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		d := live[specs[i].Name]
		if d == nil {
			continue
		}
		if _, labelled := olmcore.OwnerOf(d.Labels); !labelled && !slices.ContainsFunc(d.OwnerReferences, owned.IsReference) {
			if !adopt {
				return fmt.Sprintf("deployment %s exists and is not managed by an operator", d.Name)
			}
			continue
		}
		for _, other := range neighbours {
			if chain.IsNeighbour(c, other) && owned.By(other).Owns(d.Labels) && !relatives.Has(other) {
				return fmt.Sprintf("deployment %s is owned by ClusterServiceVersion %s", d.Name, other.Name)
			}
		}
	}
	return ""
}

// Attempt is one write of an installation, and how its last try ended.
type Attempt struct {
	// content is what was sent: the object or the patch, and the account.
	content string
	// result is zero until the write was tried.
	result olmcore.LastResult
	// count is the number of tries that ended in the class of result.
	count int
}

// Attempts are the writes of the last installation by object.
type Attempts map[olmcore.Key]Attempt

// Equal reports whether two memories say the same.
func (a Attempts) Equal(b Attempts) bool { return maps.Equal(a, b) }

// Tries is what is known of earlier tries to install a ClusterServiceVersion.
type Tries struct {
	Now time.Time
	// Attempts are those of the last call; LastRun is how the last Run ended.
	Attempts Attempts
	LastRun  olmcore.LastResults
	// Since is the beginning of this installation: results from before it count for nothing. Zero: all count.
	Since time.Time
	// Again is set if an installation failed already. Its failed writes are repeated with backoff. A write that the API
	// server called invalid is not repeated until its content changes.
	Again bool
}

// installRetry is the wait after a write of an installation that failed.
var installRetry = olmcore.Backoff{Base: 5 * time.Second, Max: 10 * time.Minute}

// RefusedRetry is the wait after a write for which permissions are missing.
var RefusedRetry = olmcore.Backoff{Base: time.Minute, Max: 10 * time.Minute}

// of returns the memory of a write. Its result is zero if the write was not tried with this content.
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

// left returns how long a failed write waits for its next try; permanent is set if it waits for a change of its
// content.
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

// contentOf returns what a write sends, without the version of the object that it was made for. Of a Secret it is the
// metadata alone: a certificate is a new one with each try, and its key is not kept.
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
