// SPDX-License-Identifier: Apache-2.0

package fake

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/workloads"
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
	d.cluster.deployments.Break(d.key, message)
}

// Heal undoes Break, and ends the failure of a loaded Deployment.
func (d Deployment) Heal() { d.cluster.deployments.Heal(d.key) }

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
	return Edit(j.cluster, j.key.Namespace, j.key.Name, func(job *batchv1.Job) { workloads.FinishJob(job, at, failure) })
}
