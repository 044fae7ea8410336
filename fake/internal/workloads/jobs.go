// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinishJob completes a Job if failure is empty. Otherwise the Job fails with failure as the reason.
func FinishJob(job *batchv1.Job, at metav1.Time, failure string) {
	condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastProbeTime: at, LastTransitionTime: at}
	if job.Status.StartTime == nil {
		job.Status.StartTime = &at
	}
	if failure == "" {
		job.Status.Succeeded = 1
		job.Status.CompletionTime = &at
	} else {
		condition.Type, condition.Reason, condition.Message = batchv1.JobFailed, failure, "Job has failed"
		job.Status.Failed = 1
	}
	job.Status.Active = 0
	job.Status.Conditions = append(job.Status.Conditions, condition)
}
