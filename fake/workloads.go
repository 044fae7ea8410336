// SPDX-License-Identifier: Apache-2.0

package fake

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Deployment is a Deployment of a Cluster, by namespace and name. The object need not exist yet.
type Deployment struct {
	cluster *Cluster
	key     types.NamespacedName
}

// Deployment returns the Deployment of a namespace and name.
func (c *Cluster) Deployment(namespace, name string) Deployment {
	return Deployment{c, types.NamespacedName{Namespace: namespace, Name: name}}
}

// Break makes the Deployment unavailable until Heal is called. The Available condition has the message.
func (d Deployment) Break(message string) {
	setZero(&message, "Deployment does not have minimum availability.")
	d.cluster.broken[d.key] = message
	d.cluster.enqueueAll(workqueue.Deployments, store.DeploymentKind, d.key.Namespace)
}

// Heal undoes Break, and ends the failure of a loaded Deployment.
func (d Deployment) Heal() {
	delete(d.cluster.broken, d.key)
	if o := store.Get[*appsv1.Deployment](d.cluster.store, store.DeploymentKind, d.key.Namespace, d.key.Name); o != nil {
		delete(d.cluster.held, o.UID)
	}
	d.cluster.enqueueAll(workqueue.Deployments, store.DeploymentKind, d.key.Namespace)
}

// Job is a Job of a Cluster, by namespace and name.
type Job struct {
	cluster *Cluster
	key     types.NamespacedName
}

// Job returns the Job of a namespace and name.
func (c *Cluster) Job(namespace, name string) Job {
	return Job{c, types.NamespacedName{Namespace: namespace, Name: name}}
}

// Finish completes the Job if failure is empty. Otherwise the Job fails with failure as the reason, for example
// "BackoffLimitExceeded". Finish returns a NotFound error if the Job does not exist.
func (j Job) Finish(failure string) error {
	at := olmcore.Timestamp(j.cluster.Now())
	return Edit(j.cluster, j.key.Namespace, j.key.Name, func(job *batchv1.Job) {
		condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastProbeTime: at, LastTransitionTime: at}
		setDefault(&job.Status.StartTime, at)
		if failure == "" {
			job.Status.Succeeded = 1
			job.Status.CompletionTime = &at
		} else {
			condition.Type, condition.Reason, condition.Message = batchv1.JobFailed, failure, "Job has failed"
			job.Status.Failed = 1
		}
		job.Status.Active = 0
		job.Status.Conditions = append(job.Status.Conditions, condition)
	})
}
