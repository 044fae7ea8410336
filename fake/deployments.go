// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// runDeployment is the Deployment controller. It makes no ReplicaSets and no
// Pods: the status is that of a Deployment whose Pods run when its
// ServiceAccount exists, its images work and a node takes them.
func (c *Cluster) runDeployment(t workqueue.Task) {
	d := store.Get[*appsv1.Deployment](c.store, store.DeploymentKind, t.Key.Namespace, t.Key.Name)
	if d == nil || d.DeletionTimestamp != nil || c.held[d.UID] && d.Status.ObservedGeneration >= d.Generation {
		return
	}
	delete(c.held, d.UID) // its Pods are others from now on
	if c.revise(d) {
		return
	}
	next := d.DeepCopy()
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	problem, startOnly := c.deploymentProblem(d)
	s := &next.Status
	fresh := s.ObservedGeneration != d.Generation
	running := s.AvailableReplicas > 0
	rolledOut := !fresh && s.UpdatedReplicas >= replicas
	s.ObservedGeneration, s.Replicas = d.Generation, replicas
	switch {
	case replicas == 0, problem == "" && !fresh, startOnly && running && rolledOut:
		c.deploymentRuns(next, replicas)
	case running && (problem == "" || startOnly):
		s.UpdatedReplicas = 0 // the old Pods go on until the new ones run
		c.deploymentProgresses(t, next, fresh)
	default:
		c.deploymentStops(next, replicas, problem)
		c.deploymentProgresses(t, next, fresh || running)
	}
	c.store.ReplaceStatus(c.store.Table(store.DeploymentKind), d, next)
}

// revision counts the templates that a Deployment had.
type revision struct {
	template string // its hash
	count    int
}

const revisionAnnotation = "deployment.kubernetes.io/revision"

// revise shows the number of the Deployment's template in its metadata, and reports whether that changed anything.
func (c *Cluster) revise(d *appsv1.Deployment) bool {
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
		return "unreadable" // nothing in a template does that
	}
	return olmcore.NameSuffix(10, string(data))
}

// deploymentProblem says why a Deployment's Pods cannot run; startOnly means that Pods which run already are not
// affected.
func (c *Cluster) deploymentProblem(d *appsv1.Deployment) (problem string, startOnly bool) {
	template := &d.Spec.Template.Spec
	if problem := c.broken[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}]; problem != "" {
		return problem, false
	}
	if !c.nodeFor(template) {
		return "0 nodes are available", false
	}
	if account := template.ServiceAccountName; !c.hasServiceAccount(d.Namespace, account) {
		return fmt.Sprintf("pods %q is forbidden: error looking up service account %s/%s: serviceaccount %q not found", d.Name+"-", d.Namespace, account, account), true
	}
	for _, containers := range [][]corev1.Container{template.InitContainers, template.Containers} {
		for _, container := range containers {
			if broken := c.images[container.Image].broken; broken != "" {
				return fmt.Sprintf("container %s: %s", container.Name, broken), true
			}
		}
	}
	return "", false
}

func (c *Cluster) deploymentRuns(d *appsv1.Deployment, replicas int32) {
	c.noteStart(d)
	s := &d.Status
	s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = replicas, replicas, replicas, 0
	setDefault(&s.TerminatingReplicas, 0)
	c.setDeploymentCondition(d, appsv1.DeploymentAvailable, true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	c.setDeploymentCondition(d, appsv1.DeploymentProgressing, true, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", d.Name+"-"+c.revisions[d.UID].template))
}

func (c *Cluster) deploymentStops(d *appsv1.Deployment, replicas int32, problem string) {
	s := &d.Status
	s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = replicas, 0, 0, replicas
	setDefault(&s.TerminatingReplicas, 0)
	setZero(&problem, "Deployment does not have minimum availability.")
	c.setDeploymentCondition(d, appsv1.DeploymentAvailable, false, "MinimumReplicasUnavailable", problem)
}

// deploymentProgresses shows a roll-out, and that it failed after its deadline, which counts from the last start.
func (c *Cluster) deploymentProgresses(t workqueue.Task, d *appsv1.Deployment, starts bool) {
	progressing := findDeploymentCondition(d.Status.Conditions, appsv1.DeploymentProgressing)
	if starts || progressing == nil {
		c.setDeploymentCondition(d, appsv1.DeploymentProgressing, true, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", d.Name+"-"+c.revisions[d.UID].template))
		progressing = findDeploymentCondition(d.Status.Conditions, appsv1.DeploymentProgressing)
		progressing.LastUpdateTime = olmcore.Timestamp(c.Now())
	}
	if d.Spec.ProgressDeadlineSeconds == nil || progressing.Status == corev1.ConditionFalse {
		return
	}
	deadline := progressing.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	if c.Now().Before(deadline) {
		c.queue.AddAt(t, deadline)
		return
	}
	c.setDeploymentCondition(d, appsv1.DeploymentProgressing, false, "ProgressDeadlineExceeded", fmt.Sprintf("Deployment %q exceeded its progress deadline.", d.Name))
}

func (c *Cluster) setDeploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType, is bool, reason, message string) {
	at := olmcore.Timestamp(c.Now())
	want := appsv1.DeploymentCondition{Type: kind, Status: conditionStatus[corev1.ConditionStatus](is), Reason: reason, Message: message,
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

// runAPIService keeps the condition Available: an APIService without a Service is served locally, another is available
// when its Service exists and selects the Pods of an available Deployment, or ready Pods.
func (c *Cluster) runAPIService(key olmcore.Key) {
	service := store.Get[*apiregistrationv1.APIService](c.store, store.APIServiceKind, "", key.Name)
	if service == nil || service.DeletionTimestamp != nil {
		return
	}
	status, reason, message := c.apiServiceState(service)
	want := apiregistrationv1.APIServiceCondition{Type: apiregistrationv1.Available, Status: status, Reason: reason, Message: message,
		LastTransitionTime: olmcore.Timestamp(c.Now())}
	next := service.DeepCopy()
	found := false
	for i, have := range next.Status.Conditions {
		if have.Type != want.Type {
			continue
		}
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		next.Status.Conditions[i], found = want, true
	}
	if !found {
		next.Status.Conditions = append(next.Status.Conditions, want)
	}
	c.store.ReplaceStatus(c.store.Table(store.APIServiceKind), service, next)
}

func (c *Cluster) apiServiceState(a *apiregistrationv1.APIService) (status apiregistrationv1.ConditionStatus, reason, message string) {
	ref := a.Spec.Service
	if ref == nil {
		return apiregistrationv1.ConditionTrue, "Local", "Local APIServices are always available"
	}
	service := store.Get[*corev1.Service](c.store, store.ServiceKind, ref.Namespace, ref.Name)
	if service == nil {
		return apiregistrationv1.ConditionFalse, "ServiceNotFound", fmt.Sprintf("service/%s in %q is not present", ref.Name, ref.Namespace)
	}
	if deployments, pods := c.endpoints(service); len(deployments)+len(pods) > 0 {
		return apiregistrationv1.ConditionTrue, "Passed", "all checks passed"
	}
	return apiregistrationv1.ConditionFalse, "MissingEndpoints", fmt.Sprintf("endpoints for service/%s in %q have no addresses", ref.Name, ref.Namespace)
}
