// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

const (
	// labelUnpackRef is a label of a Job with the name of the bundle that it unpacks.
	labelUnpackRef = "operatorframework.io/bundle-unpack-ref"
	// annotationSpecHash is an annotation of a Job with the hash of the Job's input.
	annotationSpecHash = olmcore.KeyPrefix + "unpack-spec-hash"
	// jobTTL is how long a finished Job is kept.
	jobTTL = 5 * time.Minute
	// backoffLimit is how often the Job of one try may replace its Pod.
	backoffLimit = 3
	// maxFailedTries is how many Jobs of failed tries are kept, in addition to the first.
	maxFailedTries = 5
	// retryInterval is the time between a failed try and the next, unless an annotation sets another.
	retryInterval = 5 * time.Minute
	// podGrace is how long a Job may have no Pod before a message reports it.
	podGrace = 30 * time.Second
)

// AnnotationTimeout and AnnotationRetryInterval are annotations of an OperatorGroup. They set the timeout of a Job and
// the interval between two tries for its namespace. The values are Go durations, such as 10m.
const (
	AnnotationTimeout       = "operatorframework.io/bundle-unpack-timeout"
	AnnotationRetryInterval = "operatorframework.io/bundle-unpack-min-retry-interval"
)

// setting returns the duration in an annotation of the OperatorGroup of the namespace. It returns otherwise if there is
// no annotation, or if its value is below least. If the namespace has several OperatorGroups, their annotations do not
// count, because nothing is installed there. The Result reports a value that is not a duration.
func (f *facts) setting(annotation, word string, least, otherwise time.Duration) (time.Duration, olmcore.Result) {
	if len(f.in.OperatorGroups.Items) != 1 {
		return otherwise, olmcore.Result{}
	}
	group := f.in.OperatorGroups.Items[0]
	text, set := group.Annotations[annotation]
	if !set {
		return otherwise, olmcore.Result{}
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		const message = "failed to parse unpack %s annotation(%s: %s): %s"
		return otherwise, warn(ReasonSettingInvalid, group, message, word, annotation, text, err)
	case d < least:
		return otherwise, olmcore.Result{}
	}
	return d, olmcore.Result{}
}

// runJob creates, replaces and retries the Job. It returns the condition of the lookup.
func (f *facts) runJob() (condition, olmcore.Result) {
	timeout := installplan.DefaultUnpackTimeout
	if f.in.Config.UnpackTimeout != nil {
		timeout = *f.in.Config.UnpackTimeout
	}
	timeout, result := f.setting(AnnotationTimeout, "timeout", 0, timeout)
	tries := triesOf(f.in.Jobs.Items)
	if len(tries) == 0 {
		if !isTaken(f.in.Jobs.Items, f.target.name) {
			result = result.And(do(f.target.create(f.target.job(f.target.name, timeout), ReasonObjectAbsent)))
		}
		return notStarted, result
	}
	interval, invalid := f.setting(AnnotationRetryInterval, "retry", 1, retryInterval)
	state, next := f.followJob(tries, timeout, interval)
	return state, result.And(invalid, next)
}

// followJob decides by the newest of the Jobs. It returns the condition of the lookup.
func (f *facts) followJob(tries []*batchv1.Job, timeout, interval time.Duration) (condition, olmcore.Result) {
	newest := tries[0]
	failed, complete := conditionOf(newest, batchv1.JobFailed), conditionOf(newest, batchv1.JobComplete)
	switch {
	case f.target.differs(newest):
		return condition{}, do(deleteOf(newest, ReasonObjectDiffers, "it was created for another image or with other settings"))
	case failed != nil:
		state, retry := f.retry(*failed, timeout, interval)
		return state, deleteOutdated(tries).And(retry)
	case complete == nil:
		return f.progress(newest)
	}
	if left := remaining(complete.LastTransitionTime, plans.VisibilityGrace, f.in.Now); left > 0 {
		return pending(reasonIncomplete, messageNotCompleted), olmcore.Result{RequeueAfter: left}
	}
	empty := batchv1.JobCondition{
		LastTransitionTime: complete.LastTransitionTime, Reason: ReasonBundleEmpty, Message: f.target.emptyMessage(f.in.ConfigMap),
	}
	return f.retry(empty, timeout, interval)
}

// retry creates the next Job once the interval after a failure is over. It returns the condition of the lookup.
func (f *facts) retry(failed batchv1.JobCondition, timeout, interval time.Duration) (condition, olmcore.Result) {
	if left := remaining(failed.LastTransitionTime, interval, f.in.Now); left > 0 {
		state := condition{v1alpha1.BundleLookupFailed, failed.Reason, failed.Message}
		return state, olmcore.Result{RequeueAfter: left}
	}
	next := f.target.job(nextName(f.in.Jobs.Items, f.target.name), timeout)
	return notStarted, do(f.target.create(next, ReasonRetried))
}

// emptyMessage returns the message about a Job that succeeded without a bundle in its ConfigMap.
func (t target) emptyMessage(cm *corev1.ConfigMap) string {
	message := fmt.Sprintf("unpack job finished but %s/%s contains no bundle", t.namespace, t.name)
	if why := bundle.Incomplete(cm); why != "" {
		message += ": " + why
	}
	return message
}

// remaining returns how much of d is left since then. It is at most d, even if a clock was set back.
func remaining(since metav1.Time, d time.Duration, now time.Time) time.Duration {
	return min(d, since.Add(d).Sub(now))
}

// triesOf returns the Jobs that are not being deleted. Jobs that did not fail come first, then newer Jobs.
func triesOf(jobs []*batchv1.Job) []*batchv1.Job {
	tries := slices.DeleteFunc(slices.Clone(jobs), func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil })
	when := func(j *batchv1.Job) (failed int, at time.Time) {
		if c := conditionOf(j, batchv1.JobFailed); c != nil {
			return 1, c.LastTransitionTime.Time
		}
		return 0, j.CreationTimestamp.Time
	}
	slices.SortFunc(tries, func(a, b *batchv1.Job) int {
		failedA, atA := when(a)
		failedB, atB := when(b)
		return cmp.Or(cmp.Compare(failedA, failedB), atB.Compare(atA), strings.Compare(a.Name, b.Name))
	})
	return tries
}

// deleteOutdated deletes the failed tries that are not kept. The last ones and the first are kept. It does not delete
// all others at once.
func deleteOutdated(tries []*batchv1.Job) (result olmcore.Result) {
	last := min(len(tries)-1, 2*maxFailedTries)
	for _, old := range tries[min(maxFailedTries, last):last] {
		result.Actions = append(result.Actions, deleteOf(old, ReasonHistory, "newer tries are kept"))
	}
	return result
}

// conditionOf returns a condition of a Job if it is True, or nil.
func conditionOf(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		c := &j.Status.Conditions[i]
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// isTaken reports whether a Job with a name exists.
func isTaken(jobs []*batchv1.Job, name string) bool {
	return slices.ContainsFunc(jobs, func(j *batchv1.Job) bool { return j.Name == name })
}

// nextName returns the first free name of a Job for another try.
func nextName(jobs []*batchv1.Job, first string) string {
	for n := 1; ; n++ {
		if name := first[:58] + olmcore.NameSuffix(5, first, strconv.Itoa(n)); !isTaken(jobs, name) {
			return name
		}
	}
}

// differs reports whether a Job was created for another image or with other settings. Changes by webhooks do not count,
// and neither does a timeout, which another namespace may have set.
func (t target) differs(j *batchv1.Job) bool {
	if have, ok := j.Annotations[annotationSpecHash]; ok {
		return have != t.specHash()
	}
	return !slices.ContainsFunc(j.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == "pull" && c.Image == t.image
	})
}

// specHash returns the hash of the input of a Job.
func (t target) specHash() string {
	hash, _ := olmcore.Hash(struct { // strings and numbers always encode
		Path, OPMImage, UtilImage string
		RunAsUser                 int64
		Secrets                   []corev1.LocalObjectReference
	}{t.image, t.config.OPMImage, t.config.UtilImage, t.config.RunAsUser, t.pullSecrets()})
	return hash
}

// job returns a Job. A timeout of 0 means that it has no deadline.
func (t target) job(name string, timeout time.Duration) *batchv1.Job {
	job := &batchv1.Job{TypeMeta: typeMeta(batchv1.SchemeGroupVersion, "Job"), ObjectMeta: t.meta()}
	job.Name, job.Labels[labelUnpackRef] = name, t.name
	job.Annotations = map[string]string{annotationSpecHash: t.specHash()}
	job.Spec = batchv1.JobSpec{
		TTLSecondsAfterFinished: new(int32(jobTTL / time.Second)), BackoffLimit: new(int32(backoffLimit)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(job.Labels)}, Spec: t.podSpec()},
	}
	if timeout > 0 {
		job.Spec.ActiveDeadlineSeconds = new(max(1, int64((timeout+time.Second-1)/time.Second)))
	}
	return job
}

// progress returns the condition of the lookup while a Job runs. Its message explains why Pods of the Job wait.
func (f *facts) progress(job *batchv1.Job) (condition, olmcore.Result) {
	var texts []string
	var result olmcore.Result
	pods := slices.DeleteFunc(inputs.ByName(f.in.Pods.Items), func(pod *corev1.Pod) bool { return pod.Labels["job-name"] != job.Name })
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodPending {
			texts = append(texts, waits(pod)...)
		}
	}
	if len(pods) == 0 && f.in.Pods.Complete {
		if left := remaining(job.CreationTimestamp, podGrace, f.in.Now); left > 0 {
			result = olmcore.Result{RequeueAfter: left}
		} else {
			texts = append(texts, fmt.Sprintf("Unpack job %s/%s has no pods", job.Namespace, job.Name))
		}
	}
	if len(texts) == 0 {
		return pending(reasonIncomplete, messageNotCompleted), result
	}
	if slices.ContainsFunc(pods, lacksImage) {
		const message = "image %s cannot be pulled; check its name, the mirrors of the nodes, and the secrets of CatalogSource %s"
		result = warn(ReasonImageUnavailable, job, message, printable.Clip(f.in.Lookup.Path), f.in.Lookup.CatalogSourceRef.Name)
	}
	return pending(reasonIncomplete, messageNotCompleted+": "+strings.Join(texts, " | ")), result
}

// lacksImage reports whether a pending Pod waits for an image that the kubelet cannot pull.
func lacksImage(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		w := c.State.Waiting
		return !c.Ready && w != nil && (w.Reason == "ImagePullBackOff" || w.Reason == "ErrImagePull" || w.Reason == "InvalidImageName")
	})
}

// waits returns why a pending Pod waits.
func waits(pod *corev1.Pod) (texts []string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			texts = append(texts, fmt.Sprintf("Unpack pod(%s/%s) is not scheduled: %s", pod.Namespace, pod.Name, c.Message))
		}
	}
	containers := slices.Clone(pod.Status.InitContainerStatuses)
	slices.SortFunc(containers, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range containers {
		if c.Ready {
			continue
		}
		text := fmt.Sprintf("Unpack pod(%s/%s) container(%s) is pending", pod.Namespace, pod.Name, c.Name)
		if w := c.State.Waiting; w != nil {
			text += fmt.Sprintf(". Reason: %s, Message: %s", w.Reason, w.Message)
		}
		texts = append(texts, text)
	}
	return texts
}
