// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// labelUnpackRef ties a Job to the bundle that it unpacks.
const labelUnpackRef = "operatorframework.io/bundle-unpack-ref"

// podGrace is how long a Job may take to get a Pod before that is worth a word.
const podGrace = 30 * time.Second

// order sorts the Jobs: those that did not fail first, then the newest.
func (u *unpacking) order() {
	for _, j := range u.in.Jobs {
		if j != nil && j.DeletionTimestamp == nil {
			u.jobs = append(u.jobs, j)
		}
	}
	slices.SortFunc(u.jobs, func(a, b *batchv1.Job) int {
		failedA, failedB := jobCondition(a, batchv1.JobFailed), jobCondition(b, batchv1.JobFailed)
		switch {
		case failedA == nil && failedB != nil:
			return -1
		case failedA != nil && failedB == nil:
			return 1
		case failedA != nil:
			return cmp.Or(failedB.LastTransitionTime.Compare(failedA.LastTransitionTime.Time), strings.Compare(a.Name, b.Name))
		}
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

// jobCondition returns a condition of a Job that is True; nil when it is not.
func jobCondition(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func (u *unpacking) taken(name string) bool {
	return slices.ContainsFunc(u.in.Jobs, func(j *batchv1.Job) bool { return j != nil && j.Name == name })
}

// nextName is the first free name for another try.
func (u *unpacking) nextName() string {
	for n := 1; ; n++ {
		if name := u.name[:58] + olmcore.NameSuffix(5, u.name, strconv.Itoa(n)); !u.taken(name) {
			return name
		}
	}
}

// differs reports a Job that was asked for something else. What a webhook or
// another namespace's time limit may change does not count.
func (u *unpacking) differs(j *batchv1.Job, hash string) bool {
	if have, ok := j.Annotations[u.in.Config.unpackHashKey()]; ok {
		return have != hash
	}
	return !slices.ContainsFunc(j.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == "pull" && c.Image == u.in.Lookup.Path
	})
}

// history deletes the Jobs of earlier tries but the last ones and the first.
func (u *unpacking) history() {
	keep := or(u.in.Config.MaxUnpackJobs, DefaultMaxUnpackJobs)
	for i := keep; i < len(u.jobs)-1 && i < 2*keep; i++ {
		u.delete(u.jobs[i], ReasonUnpackHistory, "newer tries are kept")
	}
}

// desiredJob returns the Job of a name, and the hash of what it is asked for.
func (u *unpacking) desiredJob(name string) (job *batchv1.Job, hash string) {
	pod := u.podSpec()
	// Strings and numbers always encode.
	hash, _ = olmcore.Hash(struct {
		Path, OPMImage, UtilImage string
		RunAsUser                 int64
		Secrets                   []corev1.LocalObjectReference
	}{u.in.Lookup.Path, u.in.Config.OPMImage, u.in.Config.UtilImage, u.in.Config.RunAsUser, pod.ImagePullSecrets})
	labels := map[string]string{olmcore.LabelManaged: "true", labelUnpackRef: u.name}
	job = &batchv1.Job{TypeMeta: typeMeta(batchv1.SchemeGroupVersion.String(), "Job"), ObjectMeta: u.meta()}
	job.Name, job.Labels = name, labels
	job.Annotations = map[string]string{u.in.Config.unpackHashKey(): hash}
	job.Spec = batchv1.JobSpec{
		TTLSecondsAfterFinished: new(int32(or(u.in.Config.UnpackJobTTL, DefaultUnpackJobTTL) / time.Second)),
		BackoffLimit:            new(or(u.in.Config.UnpackBackoffLimit, DefaultUnpackBackoffLimit)),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{olmcore.LabelManaged: "true", labelUnpackRef: u.name}},
			Spec:       pod,
		},
	}
	if limit, ok := u.timeout(); ok {
		job.Spec.ActiveDeadlineSeconds = new(max(1, int64((limit+time.Second-1)/time.Second)))
	}
	return job, hash
}

// podSpec is the Pod that unpacks: the image itself brings its files, a helper
// copies them out, and a tool writes them into the ConfigMap.
//
// Source: operator-lifecycle-manager pkg/controller/bundle, job.
func (u *unpacking) podSpec() corev1.PodSpec {
	pull := corev1.PullAlways
	if strings.Contains(u.in.Lookup.Path, "@") {
		pull = corev1.PullIfNotPresent
	}
	bundle := corev1.VolumeMount{Name: "bundle", MountPath: "/bundle"}
	util := corev1.VolumeMount{Name: "util", MountPath: "/util"}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	extract := unpackContainer("extract", u.in.Config.OPMImage, bundle)
	extract.Command = []string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/",
		"-n", u.in.Lookup.CatalogSourceRef.Namespace, "-c", u.name, "-z"}
	extract.Env = []corev1.EnvVar{{Name: "CONTAINER_IMAGE", Value: u.in.Lookup.Path}}
	copyHelper := unpackContainer("util", u.in.Config.UtilImage, util)
	copyHelper.Command = []string{"/bin/cp", "-Rv", "/bin/cpb", "/util/cpb"}
	pullBundle := unpackContainer("pull", u.in.Lookup.Path, bundle, util)
	pullBundle.Command, pullBundle.ImagePullPolicy = []string{"/util/cpb", "/bundle"}, pull
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: u.name,
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		NodeSelector:    map[string]string{"kubernetes.io/os": "linux"},
		Volumes:         []corev1.Volume{{Name: "bundle", VolumeSource: empty}, {Name: "util", VolumeSource: empty}},
		InitContainers:  []corev1.Container{copyHelper, pullBundle},
		Containers:      []corev1.Container{extract},
		Tolerations:     unpackTolerations(),
	}
	if user := u.in.Config.RunAsUser; user > 0 {
		spec.SecurityContext.RunAsUser, spec.SecurityContext.RunAsNonRoot = new(user), new(true)
	}
	for _, secret := range u.in.CatalogSource.Spec.Secrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	return spec
}

func unpackContainer(name, image string, mounts ...corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, VolumeMounts: mounts,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func unpackTolerations() []corev1.Toleration {
	var out []corev1.Toleration
	for _, arch := range [...]string{"amd64", "arm64", "ppc64le", "s390x"} {
		out = append(out, corev1.Toleration{Key: "kubernetes.io/arch", Operator: corev1.TolerationOpEqual, Value: arch})
	}
	for _, role := range [...]string{"master", "control-plane"} {
		out = append(out, corev1.Toleration{
			Key: "node-role.kubernetes.io/" + role, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	for _, taint := range [...]string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		out = append(out, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(120)),
		})
	}
	return out
}

// podTexts is the message of a Job that runs: what its Pods wait for.
func (u *unpacking) podTexts(job *batchv1.Job) string {
	var texts []string
	pods := 0
	for _, pod := range sortedByName(u.in.Pods) {
		if pod.Labels["job-name"] != job.Name {
			continue
		}
		pods++
		if pod.Status.Phase == corev1.PodPending {
			texts = append(texts, podText(pod)...)
		}
	}
	if pods == 0 {
		if left := bounded(job.CreationTimestamp.Time, podGrace, u.in.Now); left > 0 {
			u.out.Requeue(left)
		} else {
			texts = append(texts, fmt.Sprintf("Unpack job %s/%s has no pods", job.Namespace, job.Name))
		}
	}
	if len(texts) == 0 {
		return messageNotCompleted
	}
	text := strings.Join(texts, " | ")
	for _, hint := range [...]string{"ImagePullBackOff", "ErrImagePull", "manifest unknown", "unauthorized"} {
		if strings.Contains(text, hint) {
			u.warn(ReasonUnpackImageUnavailable, job, "image %s cannot be pulled; check its name, the mirrors of the nodes, and the secrets of CatalogSource %s",
				clip(u.in.Lookup.Path), u.in.Lookup.CatalogSourceRef.Name)
			break
		}
	}
	return messageNotCompleted + ": " + text
}

func podText(pod *corev1.Pod) []string {
	var texts []string
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
