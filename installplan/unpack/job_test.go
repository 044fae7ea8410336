// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan/unpack"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestJobEqualsThatOfOLM includes OLM's cases.
//
// OLM's case: time to live, backoff, deadline and labels of the Job.
func TestJobEqualsThatOfOLM(t *testing.T) {
	j := madeJob(t)
	require.Equal(t, map[string]string{"olm.managed": "true", "operatorframework.io/bundle-unpack-ref": BundleName}, j.Labels)
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: BundleName, UID: types.UID("uid-" + BundleName),
		Controller: new(false), BlockOwnerDeletion: new(false)}}, j.OwnerReferences)
	require.EqualValues(t, 300, *j.Spec.TTLSecondsAfterFinished)
	require.EqualValues(t, 3, *j.Spec.BackoffLimit)
	require.EqualValues(t, 600, *j.Spec.ActiveDeadlineSeconds)
	pod := j.Spec.Template.Spec
	require.Equal(t, []corev1.LocalObjectReference{{Name: "pull"}}, pod.ImagePullSecrets)
	require.Equal(t, []string{"util", "pull", "extract"}, []string{pod.InitContainers[0].Name, pod.InitContainers[1].Name, pod.Containers[0].Name})
	require.Equal(t, corev1.PullAlways, pod.InitContainers[1].ImagePullPolicy)
	require.Equal(t, []string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", "olm", "-c", BundleName, "-z"}, pod.Containers[0].Command)
	require.Nil(t, pod.SecurityContext.RunAsUser)
	given := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.Config.RunAsUser = 1001 })).Actions[0].(olmcore.Create).Object.(*batchv1.Job)
	require.EqualValues(t, 1001, *given.Spec.Template.Spec.SecurityContext.RunAsUser)
	pinned := unpacking(t, func(in *unpack.Input) {
		in.Lookup.Path = "quay.io/x@sha256:1"
		in.Role.Rules[0].ResourceNames, in.RoleBinding.RoleRef.Name = nil, ""
	})
	out := unpackRound(t, pinned)
	require.NotEmpty(t, out.Actions, "the name is a function of the path")
}

// TestJobDeadlineFollowsTimeoutAnnotation includes OLM's cases.
//
// OLM's case: timeout annotation: none, two groups, valid, absent, invalid.
func TestJobDeadlineFollowsTimeoutAnnotation(t *testing.T) {
	for text, want := range map[string]*int64{"2m": new(int64(120)), "500ms": new(int64(1)), "1500ms": new(int64(2)), "0": nil, "-1s": new(int64(600)), "soon": new(int64(600))} {
		out := unpackRound(t, unpacking(t, annotated(unpack.AnnotationTimeout, text)))
		require.Equal(t, want, out.Actions[0].(olmcore.Create).Object.(*batchv1.Job).Spec.ActiveDeadlineSeconds, text)
	}
	two := unpacking(t, annotated(unpack.AnnotationTimeout, "2m"))
	two.OperatorGroups.Items = append(two.OperatorGroups.Items, Group(func(g *operatorsv1.OperatorGroup) { g.Name = "other" }))
	require.EqualValues(t, 600, *unpackRound(t, two).Actions[0].(olmcore.Create).Object.(*batchv1.Job).Spec.ActiveDeadlineSeconds)
	never := unpacking(t, func(in *unpack.Input) { in.Config.UnpackTimeout = new(time.Duration(0)) })
	require.Nil(t, unpackRound(t, never).Actions[0].(olmcore.Create).Object.(*batchv1.Job).Spec.ActiveDeadlineSeconds)
}

func TestFailedJobsAreLimited(t *testing.T) {
	var jobs []*batchv1.Job
	for i := range 9 {
		jobs = append(jobs, madeJob(t, ended(batchv1.JobFailed, time.Duration(i+1)*time.Second), func(j *batchv1.Job) {
			j.Name = fmt.Sprintf("j%d", i)
		}))
	}
	out := unpackRound(t, unpacking(t, withJobs(jobs...)))
	Same(t, []string{"delete Job olm/j5 (UnpackHistory)", "delete Job olm/j6 (UnpackHistory)", "delete Job olm/j7 (UnpackHistory)"}, Describe(out.Result))
	require.Equal(t, metav1.DeletePropagationBackground, out.Actions[0].(olmcore.Delete).PropagationPolicy)
	running := madeJob(t, func(j *batchv1.Job) { j.Name = "running" })
	out = unpackRound(t, unpacking(t, withJobs(append(jobs, running)...)))
	require.Empty(t, out.Actions, "a running Job decides, even if others failed")
}

// TestNewestRunningJobDecides checks that the newest running Job decides, and that a Job that OLM created is recognized
// by the image that it pulls.
func TestNewestRunningJobDecides(t *testing.T) {
	older := madeJob(t, ended(batchv1.JobComplete, time.Hour), func(j *batchv1.Job) { j.Name, j.CreationTimestamp = "a", *Ago(time.Hour) })
	running := madeJob(t, func(j *batchv1.Job) { j.Name = "b" })
	require.Contains(t, ConditionsOf(unpackRound(t, unpacking(t, withJobs(older, running))).Lookup)[0], "Pending JobIncomplete")

	theirs := madeJob(t, func(j *batchv1.Job) {
		j.Annotations = nil
		j.Spec.Template.Spec.InitContainers[0].Image, j.Spec.Template.Spec.InitContainers[1].Image = BundleImage, "other"
	})
	require.Equal(t, []string{"delete Job olm/" + BundleName + " (UnpackObjectDiffers)"}, Describe(unpackRound(t, unpacking(t, withJobs(theirs))).Result))
}

// TestMessageOfPendingPods checks that the message contains the waiting Pods of the Job.
func TestMessageOfPendingPods(t *testing.T) {
	pod := func(job string, phase corev1.PodPhase, scheduled corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: InOLM("pod")}
		p.Labels = map[string]string{"job-name": job}
		p.Status = corev1.PodStatus{Phase: phase, InitContainerStatuses: []corev1.ContainerStatus{{Name: "pull"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: scheduled, Message: "no node"}}}
		return p
	}
	const waits = ": Unpack pod(olm/pod) container(pull) is pending"
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"one that waits": {pod(BundleName, corev1.PodPending, corev1.ConditionTrue), waits},
		"one without a node": {
			pod(BundleName, corev1.PodPending, corev1.ConditionFalse), ": Unpack pod(olm/pod) is not scheduled: no node | " + waits[2:],
		},
		"one that is running":      {pod(BundleName, corev1.PodRunning, corev1.ConditionTrue), ""},
		"one of another Job alone": {pod("other", corev1.PodPending, corev1.ConditionTrue), ": Unpack job olm/" + BundleName + " has no pods"},
	} {
		out := unpackRound(t, unpacking(t, withJobs(madeJob(t)), func(in *unpack.Input) { in.Pods = olmcore.Found(c.pod) }))
		require.Equal(t, []string{incomplete + c.want}, ConditionsOf(out.Lookup), name)
	}
}

// TestOldFailedJobsAreDeleted checks that the newest Job decides, and that of the failed Jobs the last ones and the
// first one are kept.
//
// OLM's case: which Job counts, and which are kept.
func TestOldFailedJobsAreDeleted(t *testing.T) {
	job := func(name string, age time.Duration, change ...func(*batchv1.Job)) *batchv1.Job {
		return madeJob(t, append([]func(*batchv1.Job){func(j *batchv1.Job) { j.Name, j.CreationTimestamp = name, *Ago(age) }}, change...)...)
	}
	failedAgo := func(d time.Duration) func(*batchv1.Job) { return ended(batchv1.JobFailed, d) }
	failures := func(n int) []*batchv1.Job {
		var out []*batchv1.Job
		for i := range n { // the first one failed last
			out = append(out, job(fmt.Sprintf("j%d", i), time.Hour, failedAgo(time.Duration(i+1)*time.Second)))
		}
		return out
	}
	unclear := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionUnknown}}
	}
	const failure = "Failed DeadlineExceeded: Job was active longer than specified deadline"
	hasNoPods := func(name string) []string { return []string{incomplete + ": Unpack job olm/" + name + " has no pods"} }
	for name, c := range map[string]struct {
		jobs       []*batchv1.Job
		deleted    []string
		conditions []string
	}{
		"the oldest is kept": {jobs: failures(7), deleted: []string{"j5"}, conditions: []string{notStarted, failure}},
		"several old ones": {
			jobs: failures(10), deleted: []string{"j5", "j6", "j7", "j8"}, conditions: []string{notStarted, failure},
		},
		"not more than as many as are kept": {
			jobs: failures(20), deleted: []string{"j5", "j6", "j7", "j8", "j9"}, conditions: []string{notStarted, failure},
		},
		"as many as are kept":          {jobs: failures(6), conditions: []string{notStarted, failure}},
		"one that did not fail counts": {jobs: append(failures(1), job("runs", 2*time.Hour)), conditions: hasNoPods("runs")},
		"the newest that did not fail": {
			jobs: []*batchv1.Job{job("old", 3*time.Hour), job("new", time.Minute), job("older", 4*time.Hour)}, conditions: hasNoPods("new"),
		},
		"a condition that is not True": {jobs: []*batchv1.Job{job("runs", time.Hour, unclear)}, conditions: hasNoPods("runs")},
		"the one that failed last counts": {jobs: []*batchv1.Job{job("a", time.Minute, failedAgo(10*time.Minute)), job("b", time.Hour, func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "no", LastTransitionTime: *Ago(time.Second)}}
		})}, conditions: []string{notStarted, "Failed BackoffLimitExceeded: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := unpackRound(t, unpacking(t, withJobs(c.jobs...)))
			var deleted []string
			for _, a := range out.Actions {
				deleted = append(deleted, a.(olmcore.Delete).Target.Name)
			}
			require.Equal(t, c.deleted, deleted)
			Same(t, c.conditions, ConditionsOf(out.Lookup))
		})
	}
}

func TestSeveralOperatorGroupsSetNoTimeouts(t *testing.T) {
	timeout := func(in *unpack.Input) {
		in.OperatorGroups = olmcore.Found(Group(), Group(func(g *operatorsv1.OperatorGroup) {
			g.Name, g.Annotations = "two", map[string]string{unpack.AnnotationTimeout: "1s"}
		}))
	}
	job := unpackRound(t, unpacking(t, timeout)).Actions[0].(olmcore.Create).Object.(*batchv1.Job)
	require.Equal(t, int64(600), *job.Spec.ActiveDeadlineSeconds)
}

// TestTimeoutAnnotationsOfAnOperatorGroup checks the effect of the annotations of OperatorGroups, and the reports of
// invalid values.
//
// OLM's cases: timeout annotation: none, two groups, valid, absent, invalid; retry annotation: the same; a timeout
// fails the unpacking; another image recovers.
func TestTimeoutAnnotationsOfAnOperatorGroup(t *testing.T) {
	const (
		timeout  = unpack.AnnotationTimeout
		interval = unpack.AnnotationRetryInterval
	)
	groups := func(annotations ...map[string]string) []*operatorsv1.OperatorGroup {
		var out []*operatorsv1.OperatorGroup
		for i, a := range annotations {
			out = append(out, Group(func(g *operatorsv1.OperatorGroup) { g.ObjectMeta = Meta(fmt.Sprintf("g%d", i)); g.Annotations = a }))
		}
		return out
	}
	type settings = map[string]string
	for name, c := range map[string]struct {
		groups   []*operatorsv1.OperatorGroup
		deadline int64
		wait     time.Duration // after a failure just now
		said     string
	}{
		"no group":                    {deadline: 600, wait: 5 * time.Minute},
		"two groups":                  {groups: groups(settings{timeout: "2m", interval: "1m"}, nil), deadline: 600, wait: 5 * time.Minute},
		"a group without annotations": {groups: groups(nil), deadline: 600, wait: 5 * time.Minute},
		"a group with both":           {groups: groups(settings{timeout: "2m", interval: "1m"}), deadline: 120, wait: time.Minute},
		"an invalid timeout": {
			groups: groups(settings{timeout: "soon"}), deadline: 600, wait: 5 * time.Minute, said: `failed to parse unpack timeout annotation(operatorframework.io/bundle-unpack-timeout: soon): time: invalid duration "soon"`,
		},
		"an invalid interval": {
			groups: groups(settings{interval: "often"}), deadline: 600, wait: 5 * time.Minute, said: `failed to parse unpack retry annotation(operatorframework.io/bundle-unpack-min-retry-interval: often): time: invalid duration "often"`,
		},
		"a timeout that is negative": {groups: groups(settings{timeout: "-1m"}), deadline: 600, wait: 5 * time.Minute},
		"a timeout of a second":      {groups: groups(settings{timeout: "1s"}), deadline: 1, wait: 5 * time.Minute},
		"an interval of zero":        {groups: groups(settings{interval: "0"}), deadline: 600, wait: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.OperatorGroups = olmcore.Found(c.groups...) }))
			j := out.Actions[0].(olmcore.Create).Object.DeepCopyObject().(*batchv1.Job)
			require.Equal(t, c.deadline, *j.Spec.ActiveDeadlineSeconds)
			j.UID, j.CreationTimestamp = "uid-job", *Ago(time.Minute)
			ended(batchv1.JobFailed, 0)(j)
			after := unpackRound(t, unpacking(t, withJobs(j), func(in *unpack.Input) { in.OperatorGroups = olmcore.Found(c.groups...) }))
			require.Equal(t, c.wait, after.RequeueAfter)
			var said []string
			for _, d := range append(out.Diagnostics, after.Diagnostics...) {
				require.Equal(t, unpack.ReasonSettingInvalid, d.Reason)
				said = append(said, d.Message)
			}
			if c.said == "" {
				require.Empty(t, said)
				return
			}
			require.Equal(t, []string{c.said}, slices.Compact(said))
		})
	}
}

// OLM's case: a failed Job without the label is found by its name.
func TestJobWithoutLabelIsFoundByItsName(t *testing.T) {
	c := unpackWorld(t, nil)
	unpackedSoFar(t, c, Lookup(t))
	require.NoError(t, fake.Edit(c, "olm", BundleName, func(j *batchv1.Job) { j.Labels = nil }))
	j := fake.Find[*batchv1.Job](c, "olm", BundleName).DeepCopy()
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded",
		Message: "Job was active longer than specified deadline", LastTransitionTime: metav1.NewTime(c.Now())}}
	require.NoError(t, c.UpdateStatus(j))
	out, _ := unpackedSoFar(t, c, Lookup(t))
	Same(t, []string{notStarted, "Failed DeadlineExceeded: Job was active longer than specified deadline"}, ConditionsOf(out.Lookup))
	require.Equal(t, 5*time.Minute, out.RequeueAfter)
}
