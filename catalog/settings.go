// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Suffixes of the annotation keys; Config.KeyPrefix stands in front.
const (
	keyReplicas    = "replicas"
	keyForceDelete = "force-delete-policy"
	keyResources   = "resources"
	keyPullSecrets = "pull-secrets"
	keyAttempt     = "attempt"
	keyPurpose     = "purpose"
	keyCause       = "cause"
	keyReplaces    = "replaces"

	keyConfigMapHash = "config-map-hash"
)

// settings are Config with its defaults and a CatalogSource's annotations
// applied.
type settings struct {
	replicas                                         int
	spread                                           Spread
	force                                            ForceDeletePolicy
	unreachable, notReady, gone, recovery            time.Duration
	stuckTerminating, cooldown                       time.Duration
	progress, candidate, pollLeast                   time.Duration
	backoffBase, backoffMax, backoffReset, connected time.Duration
	opmImage, utilImage, cmImage                     string
	userID                                           int64
	resources                                        *corev1.ResourceRequirements
	resourcesText                                    string
	accept                                           [len(profiles)]bool
	prefix, global                                   string
	// badKeys are the annotations that cannot be used.
	badReplicas, badForce, badResources bool
}

func resolveSettings(c *Config, cs *v1alpha1.CatalogSource) settings {
	s := settings{
		replicas:         cmp.Or(c.Replicas, DefaultReplicas),
		spread:           cmp.Or(c.Spread, SpreadPrefer),
		force:            cmp.Or(c.ForceDelete, ForceDeleteNodeLost),
		unreachable:      cmp.Or(c.NodeUnreachableGrace, DefaultNodeUnreachableGrace),
		notReady:         cmp.Or(c.NodeNotReadyGrace, DefaultNodeNotReadyGrace),
		gone:             cmp.Or(c.NodeGoneGrace, DefaultNodeGoneGrace),
		recovery:         cmp.Or(c.NodeRecoveryWindow, DefaultNodeRecoveryWindow),
		stuckTerminating: cmp.Or(c.StuckTerminatingGrace, DefaultStuckTerminatingGrace),
		cooldown:         cmp.Or(c.FailoverCooldown, DefaultFailoverCooldown),
		progress:         cmp.Or(c.ProgressDeadline, max(DefaultProgressDeadline, patience(c))),
		candidate:        cmp.Or(c.CandidateDeadline, max(DefaultCandidateDeadline, patience(c))),
		backoffBase:      cmp.Or(c.BackoffBase, DefaultBackoffBase),
		backoffMax:       cmp.Or(c.BackoffMax, DefaultBackoffMax),
		backoffReset:     cmp.Or(c.BackoffReset, DefaultBackoffReset),
		connected:        cmp.Or(c.ConnectionGrace, DefaultConnectionGrace),
		pollLeast:        min(cmp.Or(c.MinPollInterval, DefaultMinPollInterval), maxPollInterval),
		opmImage:         cmp.Or(c.OPMImage, DefaultOPMImage),
		utilImage:        cmp.Or(c.UtilImage, DefaultUtilImage),
		cmImage:          cmp.Or(c.ConfigMapServerImage, DefaultConfigMapServerImage),
		userID:           cmp.Or(c.WorkloadUserID, DefaultWorkloadUserID),
		resources:        c.Resources,
		prefix:           cmp.Or(c.KeyPrefix, olmcore.KeyPrefix),
		global:           cmp.Or(c.GlobalCatalogNamespace, "olm"),
	}
	if c.NoWorkloadUser {
		s.userID = 0
	}
	s.accept[0] = true
	for i := range s.accept {
		s.accept[i] = s.accept[i] || c.AcceptProfiles == nil
	}
	for _, p := range c.AcceptProfiles {
		s.accept[p.index()] = true
	}
	if len(cs.Annotations) > 0 {
		s.readAnnotations(cs.Annotations)
	}
	return s
}

// patience is twice the time that the startup probes of a registry give it: no
// deadline that nobody set may be shorter.
func patience(c *Config) time.Duration {
	const most = 24 * 60 * 60 / startupPeriod // probes of a day
	return 2 * startupPeriod * time.Second * time.Duration(min(c.StartupFailureThreshold, most))
}

func (s *settings) readAnnotations(annotations map[string]string) {
	if text, ok := annotations[s.prefix+keyReplicas]; ok {
		if len(text) == 1 && text[0] >= '1' && text[0] <= '0'+maxReplicas {
			s.replicas = int(text[0] - '0')
		} else {
			s.badReplicas = true
		}
	}
	if text, ok := annotations[s.prefix+keyForceDelete]; ok {
		if policy := ForceDeletePolicy(text); policy.known() {
			s.force = policy
		} else {
			s.badForce = true
		}
	}
	s.resourcesText = annotations[s.prefix+keyResources]
}

// effectiveResources decodes the annotation, which only building or hashing a
// Pod needs, and merges it over Config.Resources and OLM's own.
func (s *settings) effectiveResources() corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: parsedQuantity("10m"), corev1.ResourceMemory: parsedQuantity("50Mi"),
	}}
	mergeResources(&out, s.resources)
	if s.resourcesText != "" {
		if own := parseResources(s.resourcesText); own != nil {
			mergeResources(&out, own)
		} else {
			s.badResources = true
		}
	}
	return out
}

func parseResources(text string) *corev1.ResourceRequirements {
	own := &corev1.ResourceRequirements{}
	if json.Unmarshal([]byte(text), own) != nil {
		return nil
	}
	return own
}

func mergeResources(into, from *corev1.ResourceRequirements) {
	if from == nil {
		return
	}
	from = from.DeepCopy()
	for name, quantity := range from.Requests {
		into.Requests[name] = quantity
	}
	for name, quantity := range from.Limits {
		if into.Limits == nil {
			into.Limits = corev1.ResourceList{}
		}
		into.Limits[name] = quantity
	}
	into.Claims = append(into.Claims, from.Claims...)
}
