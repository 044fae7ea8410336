// SPDX-License-Identifier: Apache-2.0

package plans

import "time"

// VisibilityGrace is the grace period for a stale cache. During it, an object that another object proves to exist may
// be missing from an Input.
const VisibilityGrace = 10 * time.Second
