// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/health"
)

var app = map[string]string{"app": "etcd"}

// newDeployment returns a Deployment of one replica that is not available.
func newDeployment(name string, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: meta(name), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: app}}}
	d.Status.ObservedGeneration = d.Generation
	for _, f := range change {
		f(d)
	}
	return d
}

func available(d *appsv1.Deployment) { d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 1, 1 }

func deploymentIs(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
}

// newPod returns a Pod of the Deployments, created at a second, with one container.
func newPod(name string, created int, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name)}
	p.Labels, p.CreationTimestamp = app, second(created)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", Image: "quay.io/etcd:1"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func container(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.Status.ContainerStatuses[0]) }
}

func waits(reason, message string) func(*corev1.Pod) {
	return container(func(s *corev1.ContainerStatus) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	})
}

func ended(code int32, reason, message string) func(*corev1.Pod) {
	return container(func(s *corev1.ContainerStatus) {
		s.RestartCount, s.LastTerminationState.Terminated = 3, &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
	})
}

func runs(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
}

func podIs(t corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
}

// versionOf returns a CSV in a phase since second 40, of some Deployments.
func versionOf(phase v1alpha1.ClusterServiceVersionPhase, reason v1alpha1.ConditionReason, deployments ...string) *v1alpha1.ClusterServiceVersion {
	return newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.Phase, c.Status.Reason, c.Status.Message, c.Status.LastTransitionTime = phase, reason, "waiting", secondp(40)
		for _, name := range deployments {
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{Name: name})
		}
	})
}

func inputWith(c *v1alpha1.ClusterServiceVersion, objects ...olmcore.Object) health.Input {
	in := health.Input{
		Input:       inputOf(newSub("a", follows("p", "etcd.v1"), installed), newPlan("p", "Complete", started(3), done(9)), c),
		Deployments: olmcore.Found[*appsv1.Deployment](), Pods: olmcore.Found[*corev1.Pod](),
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			in.Deployments.Items = append(in.Deployments.Items, o)
		case *corev1.Pod:
			in.Pods.Items = append(in.Pods.Items, o)
		}
	}
	return in
}

func only(t *testing.T, in health.Input) health.Health {
	t.Helper()
	all, err := health.Assess(in)
	require.NoError(t, err)
	require.Contains(t, all, "a")
	return all["a"]
}

var (
	self      = olmcore.RefOf(newSub("a")).Unversioned()
	theCSV    = olmcore.RefOf(newCSV("etcd.v1")).Unversioned()
	podRef    = olmcore.RefOf(newPod("etcd-1", 0)).Unversioned()
	deployRef = olmcore.RefOf(newDeployment("etcd")).Unversioned()
)

// installing is the Health of a version that waits since second 40 for an object.
func installing(object olmcore.Ref, reason, message, advice string) health.Health {
	return health.Health{Subscription: self, Phase: health.Installing, Reason: reason, Message: message, Object: object, Since: second(40).Time, Advice: advice}
}

func evicted(p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason, p.Status.Message = "Failed", "Evicted", "low on memory"
}

// of makes a Pod that of a controller, with the hash of a template.
func of(kind, name, hash string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
		p.Labels = map[string]string{"app": "etcd", appsv1.DefaultDeploymentUniqueLabelKey: hash}
	}
}

// TestBlockingPodIsNamed checks the whole Health of Subscriptions whose Pods are not ready.
func TestBlockingPodIsNamed(t *testing.T) {
	d := newDeployment("etcd")
	waiting := versionOf("Installing", v1alpha1.CSVReasonWaiting, "etcd")
	quota := deploymentIs(appsv1.DeploymentReplicaFailure, "True", "FailedCreate", "pods \"etcd\" is forbidden: exceeded quota")
	noPull := installing(podRef, "ImagePullBackOff", "container manager, image quay.io/etcd:1: ErrImagePull: manifest unknown",
		"Make the image available: correct its name, mirror it, or give the ServiceAccount of Pod ops/etcd-1 a pull secret.")
	elsewhere := newPod("other", 99, waits("CrashLoopBackOff", ""))
	elsewhere.Labels = map[string]string{"app": "vault"}
	leaving := newPod("leaving", 99, waits("CrashLoopBackOff", ""), func(p *corev1.Pod) { p.DeletionTimestamp = secondp(50) })
	for name, tc := range map[string]struct {
		in   health.Input
		want health.Health
	}{
		"an image that cannot be pulled": {inputWith(waiting, d, newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"))), noPull},
		"the newest Pod in trouble counts": {inputWith(waiting, d, newPod("etcd-0", 20, waits("CrashLoopBackOff", "")), newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown")),
			newPod("etcd-2", 40, runs, podIs("Ready", "True", "", ""))), noPull},
		"what is usual counts less":                       {inputWith(waiting, d, newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown")), newPod("etcd-2", 40, waits("ContainerCreating", ""))), noPull},
		"Pods of others and Pods that leave do not count": {inputWith(waiting, d, elsewhere, leaving, newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"))), noPull},
		"an image name that is none": {inputWith(waiting, d, newPod("etcd-1", 30, waits("InvalidImageName", "couldn't parse image name"))),
			health.Health{Subscription: self, Phase: health.Stuck, Reason: "InvalidImageName", Object: podRef, Since: second(40).Time,
				Message: "container manager, image quay.io/etcd:1: InvalidImageName: couldn't parse image name",
				Advice:  "Correct the image name of Pod ops/etcd-1."}},
		"a container that crashes": {inputWith(waiting, d, newPod("etcd-1", 30, waits("CrashLoopBackOff", "back-off 40s"), ended(2, "Error", "no such flag"))),
			installing(podRef, "CrashLoopBackOff", "container manager: ended with exit code 2 (Error): no such flag",
				"Read the log of Pod ops/etcd-1 with kubectl logs --previous, and remove the cause.")},
		"a container that crashed, and runs for a moment": {inputWith(waiting, d, newPod("etcd-1", 30, runs, ended(1, "Error", ""))),
			installing(podRef, "CrashLoopBackOff", "container manager: ended with exit code 1 (Error)",
				"Read the log of Pod ops/etcd-1 with kubectl logs --previous, and remove the cause.")},
		"a container that needs more memory": {inputWith(waiting, d, newPod("etcd-1", 30, waits("CrashLoopBackOff", ""), ended(137, "OOMKilled", ""))),
			installing(podRef, "OOMKilled", "container manager: ended with exit code 137 (OOMKilled)",
				"Raise the memory limit of Pod ops/etcd-1 with spec.config.resources of Subscription ops/a.")},
		"a ConfigMap that is not there": {inputWith(waiting, d, newPod("etcd-1", 30, waits("CreateContainerConfigError", "configmap \"x\" not found"))),
			installing(podRef, "CreateContainerConfigError", "container manager, image quay.io/etcd:1: CreateContainerConfigError: configmap \"x\" not found",
				"Create the ConfigMap, the Secret or the key that the message names for Pod ops/etcd-1.")},
		"a container that the node cannot make": {inputWith(waiting, d, newPod("etcd-1", 30, waits("CreateContainerError", "x"))),
			installing(podRef, "CreateContainerError", "container manager, image quay.io/etcd:1: CreateContainerError: x", "Check the events of Pod ops/etcd-1: its node cannot create the container.")},
		"a command that is not there": {inputWith(waiting, d, newPod("etcd-1", 30, waits("RunContainerError", "exec: not found"))),
			installing(podRef, "RunContainerError", "container manager, image quay.io/etcd:1: RunContainerError: exec: not found",
				"Correct the command or the image of Pod ops/etcd-1: its container cannot be started.")},
		"no node": {inputWith(waiting, d, newPod("etcd-1", 30, podIs("PodScheduled", "False", "Unschedulable", "0/3 nodes are available"))),
			installing(podRef, "Unschedulable", "0/3 nodes are available", "Add capacity, or change the scheduling requirements of Pod ops/etcd-1 with spec.config of Subscription ops/a.")},
		"an evicted Pod": {inputWith(waiting, d, newPod("etcd-1", 30, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = "Failed", "Evicted", "low on memory"
		})),
			installing(podRef, "PodFailed", "Evicted: low on memory", "Check the message and the node of Pod ops/etcd-1; the Deployment replaces the Pod.")},
		"an evicted Pod, and another one in its place": {inputWith(waiting, d, newPod("etcd-0", 20, evicted), newPod("etcd-1", 30, runs)), installing(podRef, "NotReady", "the Pod is not ready", "")},
		"an evicted Pod, and no other one can be made": {inputWith(waiting, newDeployment("etcd", quota), newPod("etcd-1", 30, evicted)),
			installing(deployRef, "ReplicaFailure", "pods \"etcd\" is forbidden: exceeded quota", "Remove the cause that prevents the creation of Pods of Deployment ops/etcd, such as a quota or an admission webhook.")},
		"Pods of other Deployments and of Jobs that match": {inputWith(waiting, d, newPod("etcd-backup-9-x", 98, waits("CrashLoopBackOff", ""), of("ReplicaSet", "etcd-backup-9", "9")),
			newPod("job-x", 99, waits("CrashLoopBackOff", ""), of("Job", "job", "")), newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"), of("ReplicaSet", "etcd-7", "7"))),
			noPull},
		"a probe that fails":     {inputWith(waiting, d, newPod("etcd-1", 30, runs, podIs("Ready", "False", "ContainersNotReady", "containers with unready status: [manager]"))), installing(podRef, "NotReady", "containers with unready status: [manager]", "")},
		"containers not made":    {inputWith(waiting, d, newPod("etcd-1", 30, waits("ContainerCreating", ""))), installing(podRef, "PodPending", "the Pod is pending", "")},
		"a quota":                {inputWith(waiting, newDeployment("etcd", quota)), installing(deployRef, "ReplicaFailure", "pods \"etcd\" is forbidden: exceeded quota", "Remove the cause that prevents the creation of Pods of Deployment ops/etcd, such as a quota or an admission webhook.")},
		"no progress":            {inputWith(waiting, newDeployment("etcd", deploymentIs(appsv1.DeploymentProgressing, "False", "ProgressDeadlineExceeded", "timed out"))), installing(deployRef, "ProgressDeadlineExceeded", "timed out", "Check the events of Deployment ops/etcd, which exceeded its progress deadline.")},
		"nothing says why":       {inputWith(waiting, d), installing(deployRef, "DeploymentUnavailable", "Deployment etcd has 0 of 1 replicas updated, and 0 available", "")},
		"the Deployment is gone": {inputWith(waiting), installing(olmcore.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ops", Name: "etcd"}, "DeploymentMissing", "Deployment etcd does not exist", "")},
		"another one is fine":    {inputWith(versionOf("Installing", v1alpha1.CSVReasonWaiting, "fine", "etcd"), newDeployment("fine", available), d, newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"))), noPull},
		"a Pod in trouble counts more than a Deployment": {inputWith(versionOf("Installing", v1alpha1.CSVReasonWaiting, "gone", "etcd"), d, newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"))), noPull},
		"a rollout is not seen yet": {inputWith(waiting, newDeployment("etcd", available, func(d *appsv1.Deployment) { d.Generation++ })),
			installing(deployRef, "DeploymentUnavailable", "Deployment etcd has 1 of 1 replicas updated, and 1 available", "")},
		"the Pods are those of the last version": {inputWith(waiting, newDeployment("etcd", available, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 })),
			installing(deployRef, "DeploymentUnavailable", "Deployment etcd has 0 of 1 replicas updated, and 1 available", "")},
		"no replicas are wanted":            {inputWith(waiting, newDeployment("etcd", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })), installing(theCSV, "InstallWaiting", "waiting", "")},
		"a Pod that is done does not count": {inputWith(waiting, d, newPod("etcd-2", 40, runs, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), newPod("etcd-1", 30, waits("ErrImagePull", "manifest unknown"))), noPull},
		"done, and alone":                   {inputWith(waiting, d, newPod("etcd-1", 30, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })), installing(deployRef, "DeploymentUnavailable", "Deployment etcd has 0 of 1 replicas updated, and 0 available", "")},
		"a Pod whose container ended": {inputWith(waiting, d, newPod("etcd-1", 30, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, container(func(s *corev1.ContainerStatus) {
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}
		}))), installing(podRef, "PodFailed", "container manager: ended with exit code 3 (Error)", "Check the message and the node of Pod ops/etcd-1; the Deployment replaces the Pod.")},
		"an init container is done": {inputWith(waiting, d, newPod("etcd-1", 30, waits("PodInitializing", ""), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", Ready: true, RestartCount: 3, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
		})), installing(podRef, "PodPending", "the Pod is pending", "")},
		"an init container crashes": {inputWith(waiting, d, newPod("etcd-1", 30, waits("PodInitializing", ""), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}}
		})), installing(podRef, "CrashLoopBackOff", "container init: CrashLoopBackOff: back-off", "Read the log of Pod ops/etcd-1 with kubectl logs --previous, and remove the cause.")},
		"its Deployment is about to be made": {inputWith(versionOf("InstallReady", "", "etcd")), installing(theCSV, "", "waiting", "")},
		"it failed for the name of an image": {inputWith(versionOf("Failed", v1alpha1.CSVReasonInstallCheckFailed, "etcd"), d, newPod("etcd-1", 30, waits("InvalidImageName", ""))),
			health.Health{Subscription: self, Phase: health.Failed, Reason: "InvalidImageName", Object: podRef, Since: second(40).Time,
				Message: "container manager, image quay.io/etcd:1: InvalidImageName", Advice: "Correct the image name of Pod ops/etcd-1."}},
		"all are fine": {inputWith(waiting, newDeployment("etcd", available), newPod("etcd-1", 30, waits("ErrImagePull", ""))), installing(theCSV, "InstallWaiting", "waiting", "")},
		"the selector matches everything, and so nothing": {inputWith(waiting, newDeployment("etcd", func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }), newPod("etcd-1", 30, waits("ErrImagePull", ""))),
			installing(deployRef, "DeploymentUnavailable", "Deployment etcd has 0 of 1 replicas updated, and 0 available", "")},
		"it failed for another reason": {inputWith(versionOf("Failed", v1alpha1.CSVReasonNoOperatorGroup, "etcd"), d),
			health.Health{Subscription: self, Phase: health.Failed, Reason: "NoOperatorGroup", Message: "waiting", Object: theCSV, Since: second(40).Time,
				Advice: "Check the status and the Deployments of ClusterServiceVersion ops/etcd.v1."}},
		"it failed for its Pod": {inputWith(versionOf("Failed", v1alpha1.CSVReasonComponentUnhealthy, "etcd"), d, newPod("etcd-1", 30, runs)),
			health.Health{Subscription: self, Phase: health.Failed, Reason: "NotReady", Message: "the Pod is not ready", Object: podRef, Since: second(40).Time,
				Advice: "Check the log and the readiness probe of Pod ops/etcd-1."}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, only(t, tc.in)) })
	}
}

// TestUnreadKindsBlockNothing checks that the CSV or the Deployment blocks if Pods were not read.
func TestUnreadKindsBlockNothing(t *testing.T) {
	in := inputWith(versionOf("Installing", v1alpha1.CSVReasonWaiting, "etcd"), newDeployment("etcd"), newPod("etcd-1", 30, waits("ErrImagePull", "")))
	in.Pods = olmcore.Observed[*corev1.Pod]{}
	require.Equal(t, deployRef, only(t, in).Object)
	in.Deployments = olmcore.Observed[*appsv1.Deployment]{}
	require.Equal(t, installing(theCSV, "InstallWaiting", "waiting", ""), only(t, in))
}

func TestUsualWaitsHaveAdviceOnceTheyLast(t *testing.T) {
	in := inputWith(versionOf("Installing", v1alpha1.CSVReasonWaiting, "etcd"), newDeployment("etcd"), newPod("etcd-1", 30, runs))
	require.Empty(t, only(t, in).Advice)
	in.Now = in.Now.Add(time.Hour)
	require.Equal(t, "Check the log and the readiness probe of Pod ops/etcd-1.", only(t, in).Advice)
}

func TestInputErrorsNameTheField(t *testing.T) {
	foreign := newPod("x", 1)
	foreign.Namespace = "other"
	for want, change := range map[string]func(*health.Input){
		"Deployments[0]":                 func(in *health.Input) { in.Deployments = olmcore.Found[*appsv1.Deployment](nil) },
		"Pods[0].metadata.namespace":     func(in *health.Input) { in.Pods = olmcore.Found(foreign) },
		"Pods":                           func(in *health.Input) { in.Pods = olmcore.Observed[*corev1.Pod]{Items: []*corev1.Pod{newPod("x", 1)}} },
		"HeldBack[0].Subscription":       func(in *health.Input) { in.HeldBack = make([]heldBack, 1) },
		"Subscriptions[0].metadata.name": func(in *health.Input) { in.Subscriptions.Items = []*v1alpha1.Subscription{{}} },
	} {
		in := inputWith(versionOf("Succeeded", ""))
		change(&in)
		_, err := health.Assess(in)
		var problem *olmcore.InputError
		require.ErrorAs(t, err, &problem, want)
		require.Equal(t, want, problem.Field)
	}
}

// TestCopiedCSVIsNotThePredecessor checks that a copied CSV with the name of the predecessor is not considered a
// working version.
func TestCopiedCSVIsNotThePredecessor(t *testing.T) {
	c := versionOf("Failed", v1alpha1.CSVReasonNoOperatorGroup)
	c.Spec.Replaces = "etcd.v0"
	replaced := newCSV("etcd.v0", func(c *v1alpha1.ClusterServiceVersion) {
		c.Status.Conditions = []v1alpha1.ClusterServiceVersionCondition{{Phase: v1alpha1.CSVPhaseSucceeded}}
	})
	in := inputWith(c)
	in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, replaced)
	require.Equal(t, health.Degraded, only(t, in).Phase)
	replaced.Labels = map[string]string{v1alpha1.CopiedLabelKey: "elsewhere"}
	require.Equal(t, health.Failed, only(t, in).Phase)
}
