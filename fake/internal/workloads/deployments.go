// SPDX-License-Identifier: Apache-2.0

// Package workloads simulates the Deployment controller, the servers behind Services, and the aggregation of
// APIServices.
package workloads

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Deployments is the Deployment controller.
type Deployments struct {
	store     *store.Store
	queue     *workqueue.Queue
	images    Images
	nodes     Nodes
	broken    map[types.NamespacedName]string // the message by Deployment
	failing   map[types.UID]bool              // loaded Deployments that keep failing
	revisions map[types.UID]revision
	started   map[types.UID]started // Deployments whose Pods mount something
}

// Images returns the reason why containers of an image do not start, or the empty string.
type Images interface{ Broken(image string) string }

// Nodes reports whether any node may run Pods of a spec.
type Nodes interface {
	FitsAny(spec *corev1.PodSpec) bool
}

// NewDeployments returns the controller of a cluster without Deployments.
func NewDeployments(s *store.Store, q *workqueue.Queue, images Images, nodes Nodes) *Deployments {
	return &Deployments{
		store: s, queue: q, images: images, nodes: nodes,
		broken:    map[types.NamespacedName]string{},
		failing:   map[types.UID]bool{},
		revisions: map[types.UID]revision{},
		started:   map[types.UID]started{},
	}
}

const noAvailability = "Deployment does not have minimum availability."

// Break makes a Deployment unavailable, with a message.
func (c *Deployments) Break(key types.NamespacedName, message string) {
	c.broken[key] = cmp.Or(message, noAvailability)
	c.runAll(key.Namespace)
}

// Heal undoes Break, and ends the failure of a loaded Deployment.
func (c *Deployments) Heal(key types.NamespacedName) {
	delete(c.broken, key)
	if d := store.Get[*appsv1.Deployment](c.store, store.DeploymentKind, key.Namespace, key.Name); d != nil {
		delete(c.failing, d.UID)
	}
	c.runAll(key.Namespace)
}

func (c *Deployments) runAll(namespace string) {
	c.queue.AddAll(workqueue.Deployments, c.store.Table(store.DeploymentKind).List(namespace))
}

// Load derives from a loaded Deployment whether it keeps failing.
func (c *Deployments) Load(d *appsv1.Deployment) {
	progressing := findDeploymentCondition(d.Status.Conditions, appsv1.DeploymentProgressing)
	if progressing != nil && progressing.Status == corev1.ConditionFalse {
		c.failing[d.UID] = true
	}
}

// Run is the Deployment controller. It creates no ReplicaSets and no Pods. The status is that of a Deployment whose
// Pods run if its ServiceAccount exists, its images work and a node fits them.
func (c *Deployments) Run(t workqueue.Task) {
	d := store.Get[*appsv1.Deployment](c.store, store.DeploymentKind, t.Key.Namespace, t.Key.Name)
	if d == nil || d.DeletionTimestamp != nil || c.failing[d.UID] && d.Status.ObservedGeneration >= d.Generation {
		return
	}
	delete(c.failing, d.UID) // the rollout replaces the failing Pods
	if c.revise(d) {
		return
	}
	next := d.DeepCopy()
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	problem, startOnly := c.problem(d)
	s := &next.Status
	fresh := s.ObservedGeneration != d.Generation
	running := s.AvailableReplicas > 0
	rolledOut := !fresh && s.UpdatedReplicas >= replicas
	s.ObservedGeneration, s.Replicas = d.Generation, replicas
	switch {
	case replicas == 0, problem == "" && !fresh, startOnly && running && rolledOut:
		c.setAvailable(next, replicas)
	case running && (problem == "" || startOnly):
		s.UpdatedReplicas = 0 // the old Pods go on until the new ones run
		c.setProgressing(t, next, fresh)
	default:
		c.setUnavailable(next, replicas, problem)
		c.setProgressing(t, next, fresh || running)
	}
	c.store.ReplaceStatus(c.store.Table(store.DeploymentKind), d, next)
}

// revision counts the templates that a Deployment had.
type revision struct {
	template string // its hash
	count    int
}

const revisionAnnotation = "deployment.kubernetes.io/revision"

// revise sets the annotation with the revision of the template, and reports whether it changed.
func (c *Deployments) revise(d *appsv1.Deployment) bool {
	template := templateHash(d)
	r := c.revisions[d.UID]
	if r.template != template {
		if r.template == "" { // new, or loaded
			r.count, _ = strconv.Atoi(d.Annotations[revisionAnnotation])
		}
		if r.template != "" || r.count == 0 {
			r.count++
		}
		r.template = template
		c.revisions[d.UID] = r
	}
	shown := strconv.Itoa(r.count)
	if d.Annotations[revisionAnnotation] == shown {
		return false
	}
	next := store.Shallow(d).(*appsv1.Deployment)
	next.Annotations = maps.Clone(d.Annotations)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, revisionAnnotation, shown)
	c.store.Commit(c.store.Table(store.DeploymentKind), d, next)
	return true
}

func templateHash(d *appsv1.Deployment) string {
	data, err := json.Marshal(d.Spec.Template)
	if err != nil {
		return "unreadable" // a template can always be encoded
	}
	return olmcore.NameSuffix(10, string(data))
}

// problem returns the reason why the Pods of a Deployment cannot run. startOnly means that running Pods are not
// affected.
func (c *Deployments) problem(d *appsv1.Deployment) (problem string, startOnly bool) {
	template := &d.Spec.Template.Spec
	if problem := c.broken[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}]; problem != "" {
		return problem, false
	}
	if !c.nodes.FitsAny(template) {
		return "0 nodes are available", false
	}
	if account := template.ServiceAccountName; !c.store.HasServiceAccount(d.Namespace, account) {
		return fmt.Sprintf("pods %q is forbidden: error looking up service account %s/%s: serviceaccount %q not found",
			d.Name+"-", d.Namespace, account, account), true
	}
	for _, containers := range [][]corev1.Container{template.InitContainers, template.Containers} {
		for _, container := range containers {
			if broken := c.images.Broken(container.Image); broken != "" {
				return fmt.Sprintf("container %s: %s", container.Name, broken), true
			}
		}
	}
	return "", false
}

func (c *Deployments) setAvailable(d *appsv1.Deployment, replicas int32) {
	c.noteStart(d)
	s := &d.Status
	s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = replicas, replicas, replicas, 0
	s.TerminatingReplicas = cmp.Or(s.TerminatingReplicas, new(int32(0)))
	setDeploymentCondition(c.queue.Now(), d, appsv1.DeploymentAvailable, true, "MinimumReplicasAvailable",
		"Deployment has minimum availability.")
	setDeploymentCondition(c.queue.Now(), d, appsv1.DeploymentProgressing, true, "NewReplicaSetAvailable",
		fmt.Sprintf("ReplicaSet %q has successfully progressed.", d.Name+"-"+c.revisions[d.UID].template))
}

func (c *Deployments) setUnavailable(d *appsv1.Deployment, replicas int32, problem string) {
	s := &d.Status
	s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = replicas, 0, 0, replicas
	s.TerminatingReplicas = cmp.Or(s.TerminatingReplicas, new(int32(0)))
	problem = cmp.Or(problem, noAvailability)
	setDeploymentCondition(c.queue.Now(), d, appsv1.DeploymentAvailable, false, "MinimumReplicasUnavailable", problem)
}

// setProgressing reports a rollout, or its failure after the progress deadline, which counts from the last start.
func (c *Deployments) setProgressing(t workqueue.Task, d *appsv1.Deployment, starts bool) {
	progressing := findDeploymentCondition(d.Status.Conditions, appsv1.DeploymentProgressing)
	if starts || progressing == nil {
		setDeploymentCondition(c.queue.Now(), d, appsv1.DeploymentProgressing, true, "ReplicaSetUpdated",
			fmt.Sprintf("ReplicaSet %q is progressing.", d.Name+"-"+c.revisions[d.UID].template))
		progressing = findDeploymentCondition(d.Status.Conditions, appsv1.DeploymentProgressing)
		progressing.LastUpdateTime = olmcore.Timestamp(c.queue.Now())
	}
	if d.Spec.ProgressDeadlineSeconds == nil || progressing.Status == corev1.ConditionFalse {
		return
	}
	deadline := progressing.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	if c.queue.Now().Before(deadline) {
		c.queue.AddAt(t, deadline)
		return
	}
	setDeploymentCondition(c.queue.Now(), d, appsv1.DeploymentProgressing, false, "ProgressDeadlineExceeded",
		fmt.Sprintf("Deployment %q exceeded its progress deadline.", d.Name))
}

func setDeploymentCondition(now time.Time, d *appsv1.Deployment, kind appsv1.DeploymentConditionType, is bool, reason, message string) {
	at := olmcore.Timestamp(now)
	want := appsv1.DeploymentCondition{Type: kind, Status: store.ConditionStatus[corev1.ConditionStatus](is), Reason: reason, Message: message,
		LastUpdateTime: at, LastTransitionTime: at}
	have := findDeploymentCondition(d.Status.Conditions, kind)
	switch {
	case have == nil:
		d.Status.Conditions = append(d.Status.Conditions, want)
		return
	case have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message:
		return
	case have.Status == want.Status:
		want.LastTransitionTime = have.LastTransitionTime
	}
	*have = want
}

func findDeploymentCondition(conditions []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// started contains the certificate with which the Pods of a template started.
type started struct {
	template string
	secret   *corev1.Secret
}

// noteStart records the certificate of Pods that start now. Call it before the status reports that they run.
func (c *Deployments) noteStart(d *appsv1.Deployment) {
	template := c.revisions[d.UID].template
	before, known := c.started[d.UID]
	if len(d.Spec.Template.Spec.Volumes) == 0 && !known || d.Status.AvailableReplicas > 0 && before.template == template {
		return
	}
	c.started[d.UID] = started{template, certificateOf(c.store, d.Namespace, &d.Spec.Template.Spec)}
}
