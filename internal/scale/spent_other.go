// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import "time"

// processor: this system is not asked.
func processor() time.Duration { return 0 }
