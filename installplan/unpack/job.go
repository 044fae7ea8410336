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
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

const (
	// labelUnpackRef ties a Job to the bundle that it unpacks.
	labelUnpackRef = "operatorframework.io/bundle-unpack-ref"
	// annotationSpecHash is on a Job: the hash of what it was asked for.
	annotationSpecHash = olmcore.KeyPrefix + "unpack-spec-hash"
	// jobTTL is how long a finished Job is kept.
	jobTTL = 5 * time.Minute
	// backoffLimit is how often one try may start its Pod again.
	backoffLimit = 3
	// maxFailedTries is how many failed tries of a bundle are kept, besides the first.
	maxFailedTries = 5
	// retryInterval is the time between a failed try and the next where no annotation says otherwise.
	retryInterval = 5 * time.Minute
	// podGrace is how long a Job may take to get a Pod before a message says so.
	podGrace = 30 * time.Second
)

// AnnotationTimeout and AnnotationRetryInterval are annotations of an OperatorGroup. They set the timeout of a Job and
// the interval between two tries for its namespace. The values are Go durations, such as 10m.
const (
	AnnotationTimeout       = "operatorframework.io/bundle-unpack-timeout"
	AnnotationRetryInterval = "operatorframework.io/bundle-unpack-min-retry-interval"
)

// setting reads a duration of at least least from the namespace's OperatorGroup, else the default counts. Where there
// are several groups none counts, as nothing is installed there until one is left.
func (out *Outcome) setting(in Input, annotation, word string, least, otherwise time.Duration) time.Duration {
	if len(in.OperatorGroups.Items) != 1 {
		return otherwise
	}
	group := in.OperatorGroups.Items[0]
	text, set := group.Annotations[annotation]
	if !set {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		out.warn(ReasonSettingInvalid, group, "failed to parse unpack %s annotation(%s: %s): %s", word, annotation, text, err)
	}
	if err != nil || d < least {
		return otherwise
	}
	return d
}

// runJob is the part of a round that is about the Job.
func (out *Outcome) runJob(in Input, t target) {
	timeout := installplan.DefaultUnpackTimeout
	if in.Config.UnpackTimeout != nil {
		timeout = *in.Config.UnpackTimeout
	}
	timeout = out.setting(in, AnnotationTimeout, "timeout", 0, timeout)
	tries := triesOf(in.Jobs.Items)
	if len(tries) == 0 {
		out.notStarted(in.Now)
		if !taken(in.Jobs.Items, t.name) {
			out.Actions = append(out.Actions, t.create(t.job(t.name, timeout), ReasonObjectAbsent))
		}
		return
	}
	newest, interval := tries[0], out.setting(in, AnnotationRetryInterval, "retry", 1, retryInterval)
	failed, complete := conditionOf(newest, batchv1.JobFailed), conditionOf(newest, batchv1.JobComplete)
	switch {
	case t.differs(newest):
		out.Actions = append(out.Actions, deleteOf(newest, ReasonObjectDiffers, "what it was asked for differs"))
		return
	case failed != nil:
		for _, old := range outdated(tries) {
			out.Actions = append(out.Actions, deleteOf(old, ReasonHistory, "newer tries are kept"))
		}
	case complete == nil:
		out.condition(in.Now, v1alpha1.BundleLookupPending, reasonIncomplete, out.progress(in, newest))
		return
	default:
		if left := remaining(complete.LastTransitionTime, input.VisibilityGrace, in.Now); left > 0 {
			out.condition(in.Now, v1alpha1.BundleLookupPending, reasonIncomplete, messageNotCompleted)
			out.Requeue(left)
			return
		}
		failed = &batchv1.JobCondition{LastTransitionTime: complete.LastTransitionTime, Reason: ReasonBundleEmpty, Message: t.empty(in.ConfigMap)}
	}
	if left := remaining(failed.LastTransitionTime, interval, in.Now); left > 0 {
		out.condition(in.Now, v1alpha1.BundleLookupFailed, failed.Reason, failed.Message)
		out.Requeue(left)
		return
	}
	out.Actions = append(out.Actions, t.create(t.job(nextName(in.Jobs.Items, t.name), timeout), ReasonRetried))
	out.notStarted(in.Now)
}

// empty is the message about a Job that ended well and left no bundle.
func (t target) empty(cm *corev1.ConfigMap) string {
	message := fmt.Sprintf("unpack job finished but %s/%s holds no bundle", t.namespace, t.name)
	if why := bundle.Incomplete(cm); why != "" {
		message += ": " + why
	}
	return message
}

// remaining is what is left of d since then; a clock that was moved back counts as no time passed.
func remaining(since metav1.Time, d time.Duration, now time.Time) time.Duration {
	return min(d, since.Add(d).Sub(now))
}

// triesOf returns the Jobs that are not being deleted: those that did not fail first, then the newest.
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

// outdated returns the failed tries that are not kept, as many as one round deletes: all but the last ones and the
// first.
func outdated(tries []*batchv1.Job) []*batchv1.Job {
	last := min(len(tries)-1, 2*maxFailedTries)
	return tries[min(maxFailedTries, last):last]
}

// conditionOf returns a condition of a Job that is True; nil when it is not.
func conditionOf(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		c := &j.Status.Conditions[i]
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func taken(jobs []*batchv1.Job, name string) bool {
	return slices.ContainsFunc(jobs, func(j *batchv1.Job) bool { return j.Name == name })
}

// nextName is the first free name for another try.
func nextName(jobs []*batchv1.Job, first string) string {
	for n := 1; ; n++ {
		if name := first[:58] + olmcore.NameSuffix(5, first, strconv.Itoa(n)); !taken(jobs, name) {
			return name
		}
	}
}

// differs reports a Job that was asked for something else. What a webhook or another namespace's time limit may change
// does not count.
func (t target) differs(j *batchv1.Job) bool {
	if have, ok := j.Annotations[annotationSpecHash]; ok {
		return have != t.specHash()
	}
	return !slices.ContainsFunc(j.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == "pull" && c.Image == t.image
	})
}

// specHash identifies what a Job is asked for.
func (t target) specHash() string {
	hash, _ := olmcore.Hash(struct { // strings and numbers always encode
		Path, OPMImage, UtilImage string
		RunAsUser                 int64
		Secrets                   []corev1.LocalObjectReference
	}{t.image, t.config.OPMImage, t.config.UtilImage, t.config.RunAsUser, t.pullSecrets()})
	return hash
}

// job returns the Job of a name; a timeout of 0 is none.
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

// progress is the message of a Job that runs: what its Pods wait for.
func (out *Outcome) progress(in Input, job *batchv1.Job) string {
	var texts []string
	pods := slices.DeleteFunc(input.ByName(in.Pods.Items), func(pod *corev1.Pod) bool { return pod.Labels["job-name"] != job.Name })
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodPending {
			texts = append(texts, waits(pod)...)
		}
	}
	if len(pods) == 0 && in.Pods.Complete {
		if left := remaining(job.CreationTimestamp, podGrace, in.Now); left > 0 {
			out.Requeue(left)
		} else {
			texts = append(texts, fmt.Sprintf("Unpack job %s/%s has no pods", job.Namespace, job.Name))
		}
	}
	if len(texts) == 0 {
		return messageNotCompleted
	}
	if slices.ContainsFunc(pods, lacksImage) {
		out.warn(ReasonImageUnavailable, job, "image %s cannot be pulled; check its name, the mirrors of the nodes, and the secrets of CatalogSource %s",
			report.Clip(in.Lookup.Path), in.Lookup.CatalogSourceRef.Name)
	}
	return messageNotCompleted + ": " + strings.Join(texts, " | ")
}

// lacksImage reports whether a pending Pod waits for an image that the kubelet cannot pull.
func lacksImage(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool {
		w := c.State.Waiting
		return !c.Ready && w != nil && (w.Reason == "ImagePullBackOff" || w.Reason == "ErrImagePull" || w.Reason == "InvalidImageName")
	})
}

// waits returns what a Pod that is pending waits for.
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
